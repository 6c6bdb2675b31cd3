/*
 * A library whose constructor allocates and whose destructor frees: both run outside of main, the first
 * before the shim's own constructor.
 */
#include "cuda_calls.h"

#include <stdlib.h>

void *early_memory(void);

static void *memory;

static void __attribute__((constructor)) construct(void)
{
	if (cudaMalloc(&memory, 5555))
		abort();
}

static void __attribute__((destructor)) destruct(void)
{
	cudaFree(memory);
}

void *early_memory(void)
{
	return memory;
}
