/*
 * A program's own allocator, as users write them: two C functions in a library, and counters.
 */
#include "own_allocator.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

struct own_counters own_counters;

void *own_malloc(size_t bytes, int device, void *stream)
{
	void *pointer = NULL;

	(void)device;
	(void)stream;
	if (cudaMalloc(&pointer, bytes))
		return NULL;
	own_counters.bytes += bytes;
	own_counters.total += bytes;
	if (own_counters.bytes > own_counters.peak)
		own_counters.peak = own_counters.bytes;
	return pointer;
}

void own_free(void *pointer, size_t bytes, int device, void *stream)
{
	(void)device;
	(void)stream;
	own_counters.bytes -= bytes;
	cudaFree(pointer);
}
