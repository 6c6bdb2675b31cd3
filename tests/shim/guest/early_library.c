/*
 * A library whose constructor jumps and allocates, and whose destructor frees: both run outside of
 * main, the first before the shim's own constructor.
 */
#include "cuda_calls.h"

#include <setjmp.h>
#include <stdlib.h>

void *early_memory(void);

static void *memory;

static void __attribute__((constructor)) construct(void)
{
	jmp_buf here;

	if (!setjmp(here))
		longjmp(here, 1);
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
