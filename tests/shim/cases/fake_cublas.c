/* Built as libcublas.so.13: a handle takes a workspace and keeps it, as cuBLAS does. */
#include "cuda_calls.h"

int cublasCreate_v2(void **handle);

int cublasCreate_v2(void **handle)
{
	return cudaMalloc(handle, 8519680) ? 3 : 0;
}
