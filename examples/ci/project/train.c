/* A program to test: steps that allocate and free; with an argument, one that forgets a block. */
#include "gpumemtrace.h"
#include <stdlib.h>

int cudaMalloc(void **memory, size_t bytes);
int cudaFree(void *memory);

static void step(int forget)
{
	void *input, *output;

	if (cudaMalloc(&input, 1 << 20) || cudaMalloc(&output, 1 << 20))
		exit(3);
	cudaFree(input);
	if (!forget)
		cudaFree(output);
}

int main(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < 20; i++) {
		step(argc > 1);
		gpumemtrace_mark("step");
	}
	return 0;
}
