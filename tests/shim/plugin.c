/*
 * A library that links a cudart of its own and is opened RTLD_LOCAL, as Python opens libtorch. Each
 * build of it says which major its calls must reach.
 */
#include "cuda_calls.h"

int plugin_allocate(void **memory, unsigned long bytes);
int plugin_release(void *memory);
int plugin_major(void);

__attribute__((noinline)) int plugin_allocate(void **memory, unsigned long bytes)
{
	return cudaMalloc(memory, bytes);
}

int plugin_release(void *memory)
{
	return cudaFree(memory);
}

int plugin_major(void)
{
	int version = 0;

	return cudaRuntimeGetVersion(&version) ? -1 : version / 1000;
}
