/*
 * What a call costs: cudaFree(NULL) and cudaGetDevice of the simulated runtime, alone, under the shim
 * with GPUMEMTRACE_DISABLE=1 and recording. Run by benchmark.sh; asserts nothing.
 */
#include "cuda_calls.h"

#include <stdio.h>
#include <time.h>

#define CALLS 5000000

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(void)
{
	double start, nothing, pair;
	int i;

	cudaFree(NULL);
	start = seconds();
	for (i = 0; i < CALLS; i++)
		cudaMallocHost(NULL, 0); /* refused at once: the wrapper is nearly all there is */
	nothing = (seconds() - start) / CALLS;
	start = seconds();
	for (i = 0; i < CALLS / 10; i++) {
		void *memory;

		cudaMalloc(&memory, 1000);
		cudaFree(memory);
	}
	pair = (seconds() - start) / (CALLS / 10);
	printf("refused call %.1f ns, cudaMalloc + cudaFree %.1f ns\n", nothing * 1e9, pair * 1e9);
	return 0;
}
