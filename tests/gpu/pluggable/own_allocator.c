/*
 * An allocator as users write them for torch.cuda.memory.CUDAPluggableAllocator, with counters.
 */
#include <stddef.h>

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

unsigned long own_bytes, own_peak_bytes, own_total_bytes;

void *own_malloc(size_t bytes, int device, void *stream)
{
	void *pointer = NULL;

	(void)device;
	(void)stream;
	if (bytes && cudaMalloc(&pointer, bytes))
		return NULL;
	own_bytes += bytes;
	own_total_bytes += bytes;
	if (own_bytes > own_peak_bytes)
		own_peak_bytes = own_bytes;
	return pointer;
}

void own_free(void *pointer, size_t bytes, int device, void *stream)
{
	(void)device;
	(void)stream;
	own_bytes -= bytes;
	cudaFree(pointer);
}
