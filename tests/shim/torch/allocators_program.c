/*
 * Takes 64 MiB through a function that has the name of a framework's allocator: allocators NAME.
 */
#include "cuda_calls.h"

#include <stdio.h>
#include <string.h>

#define BYTES ((size_t)64 << 20)

static int take(void)
{
	void *pointer;

	return cudaMalloc(&pointer, BYTES) != 0;
}

/* Functions of the allocators, by the names that a C++ compiler gives them. */
#define ALLOCATOR(function, symbol)                                                                \
	int function(void) __asm__(symbol);                                                        \
	__attribute__((noinline)) int function(void)                                               \
	{                                                                                          \
		int failed = take();                                                               \
                                                                                                   \
		__asm__ volatile("");                                                              \
		return failed;                                                                     \
	}

ALLOCATOR(cupy, "cupy_SingleDeviceMemoryPool_malloc")
ALLOCATOR(rmm, "_ZN3rmm2mr20pool_memory_resource8allocateEm")
ALLOCATOR(bfc, "_ZN3tsl12BFCAllocator6ExtendEm")

static int async(void)
{
	void *pointer;

	return cudaMallocAsync(&pointer, BYTES, NULL) != 0;
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		int (*take)(void);
	} ways[] = {{"cupy", cupy}, {"rmm", rmm}, {"bfc", bfc}, {"async", async}, {"plain", take}};

	for (unsigned i = 0; count == 2 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(words[1], ways[i].name) == 0)
			return ways[i].take();
	fprintf(stderr, "allocators cupy|rmm|bfc|async|plain\n");
	return 2;
}
