/*
 * A preload that stands in front of cudaMalloc and cudaFree and finds the real ones by RTLD_NEXT,
 * as torch_memory_saver and memory-pool shims do. Asks for 256 bytes more than its caller did.
 */
#include "api/cuda_abi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);

static unsigned long seen;

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	cudaError_t (*real)(void **, size_t) =
		(cudaError_t(*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");

	seen++;
	return real(memory, bytes + 256);
}

cudaError_t cudaFree(void *memory)
{
	cudaError_t (*real)(void *) = (cudaError_t(*)(void *))dlsym(RTLD_NEXT, "cudaFree");

	return real(memory);
}

static void __attribute__((destructor)) tell(void)
{
	if (getenv("HOOK_TELLS") && seen && write(STDERR_FILENO, "cudaMalloc hook used\n", 21) < 0)
		abort();
}
