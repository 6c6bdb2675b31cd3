/*
 * A preload behind the shim that leaves cudaMalloc of 666 bytes by longjmp, to where `jump_to` says.
 */
#include "api/cuda_abi.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stddef.h>

extern jmp_buf *jump_to;
jmp_buf *jump_to;

cudaError_t cudaMalloc(void **memory, size_t bytes);

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	cudaError_t (*real)(void **, size_t) = (cudaError_t(*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");

	if (bytes == 666 && jump_to)
		longjmp(*jump_to, 1);
	return real(memory, bytes);
}
