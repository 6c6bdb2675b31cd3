/*
 * A plug-in of reload.c: it makes a table for its job and, built with -DFORGETS, does not give it
 * back.
 */
#include "cuda_calls.h"

#include <stdlib.h>

void run_job(void);

__attribute__((noinline)) static void *make_table(void)
{
	void *table = NULL;

	if (cudaMalloc(&table, 512 << 10))
		abort();
	return table;
}

void run_job(void)
{
	void *table = make_table();

#ifndef FORGETS
	cudaFree(table);
#else
	(void)table;
#endif
}
