/*
 * A library of cuBLAS's name: creating a handle takes a workspace of the device, and a refusal
 * becomes the library's own error.
 */
#include "cuda_calls.h"

#define CUBLAS_STATUS_ALLOC_FAILED 3

int cublasCreate_v2(void **handle);

int cublasCreate_v2(void **handle)
{
	int error = cudaMalloc(handle, 96 << 20);

	return error ? CUBLAS_STATUS_ALLOC_FAILED : 0;
}
