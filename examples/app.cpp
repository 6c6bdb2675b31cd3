// A small server loop with two mistakes, on the CUDA runtime: a cache that is never emptied, and a
// buffer that is freed twice. Declares what it uses, so that it builds without a CUDA toolkit.
#include "gpumemtrace.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" int cudaMalloc(void **memory, std::size_t bytes);
extern "C" int cudaFree(void *memory);

class Buffer {
public:
	explicit Buffer(std::size_t bytes)
	{
		if (cudaMalloc(&memory, bytes)) {
			std::fprintf(stderr, "out of memory\n");
			std::exit(1);
		}
	}
	Buffer(const Buffer &) = delete;
	~Buffer() { cudaFree(memory); }
	void release() { cudaFree(memory); } // the mistake: the destructor frees it again

private:
	void *memory = nullptr;
};

static std::vector<Buffer *> cache;

static void answer(int request)
{
	Buffer input(4 << 20), output(1 << 20);

	cache.push_back(new Buffer(2 << 20)); // the mistake: nobody takes it out
	if (request == 7)
		output.release();
	gpumemtrace_mark("request");
}

int main()
{
	for (int request = 0; request < 40; request++)
		answer(request);
	return 0;
}
