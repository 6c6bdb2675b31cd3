/*
 * A preload behind the shim that forks inside cudaMalloc of FORKING_BYTES: parent and child both
 * return from the call. `forked_child` is fork's answer.
 */
#include "api/cuda_abi.h"

#include <dlfcn.h>
#include <unistd.h>

#define FORKING_BYTES 4242

extern pid_t forked_child;
pid_t forked_child;

cudaError_t cudaMalloc(void **memory, size_t bytes);

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	cudaError_t (*real)(void **, size_t) =
		(cudaError_t(*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");
	cudaError_t error = real(memory, bytes);

	if (bytes == FORKING_BYTES)
		forked_child = fork();
	return error;
}
