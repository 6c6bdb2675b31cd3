/*
 * Exceptions that cross a hooked call, and ends by exceptions. Argument: "through", "terminate" or
 * "destructor" (abort in a static destructor).
 */
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" int cudaMalloc(void **memory, std::size_t bytes);

namespace {

struct aborts_at_exit {
	bool armed = false;
	~aborts_at_exit()
	{
		if (armed)
			std::abort();
	}
} last;

/* Deeper in the stack than the call that threw: a mark left behind there would hide this one. */
__attribute__((noinline)) int deeper(volatile char *above)
{
	volatile char room[4096];
	void *memory;

	room[0] = above[0];
	return cudaMalloc(&memory, 1000) + (room[0] - above[0]);
}

int through()
{
	volatile char here[16] = {1};
	int caught = 0;

	for (int i = 0; i < 100; i++) {
		void *memory;

		try {
			cudaMalloc(&memory, 666);
		} catch (const std::bad_alloc &) {
			caught++;
		}
		if (deeper(here))
			return 3;
	}
	std::printf("{\"live\": 100000, \"live_count\": 100, \"caught\": %d}\n", caught);
	return caught == 100 ? 0 : 4;
}

} // namespace

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	void *memory;

	if (!std::strcmp(way, "through"))
		return through();
	if (cudaMalloc(&memory, 12345))
		return 2;
	if (!std::strcmp(way, "terminate"))
		throw 1;
	last.armed = true;
	return 0;
}
