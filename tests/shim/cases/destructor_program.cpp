/*
 * Case 1: a destructor that allocates where it should free, and a move assignment that overwrites
 * the pointer it holds.
 */
extern "C" {
int cudaMalloc(void **memory, unsigned long bytes);
int cudaFree(void *memory);
}

namespace renderer
{

class Buffer
{
      public:
	explicit Buffer(unsigned long bytes)
	{
		cudaMalloc(&memory, bytes);
	}
	Buffer &operator=(Buffer &&other)
	{
		memory = other.memory; /* what was there is lost */
		other.memory = nullptr;
		return *this;
	}
	__attribute__((noinline)) ~Buffer()
	{
		cudaMalloc(&memory, 4096); /* meant: cudaFree(memory) */
	}

      private:
	void *memory = nullptr;
};

} // namespace renderer

int main()
{
	renderer::Buffer kept(1024);

	for (int i = 0; i < 30; i++) {
		void *frame = nullptr;

		cudaMalloc(&frame, 1 << 20);
		kept = renderer::Buffer(65536);
		cudaFree(frame);
	}
	return 0;
}
