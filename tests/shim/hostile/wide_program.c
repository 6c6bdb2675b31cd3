/* Allocates so many MiB at once. */
#include "cuda_calls.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	void *memory;

	return argc < 2 || cudaMalloc(&memory, (size_t)atol(argv[1]) << 20);
}
