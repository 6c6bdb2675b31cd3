/*
 * The calls and the books of the process late: what CUDA accepted, and what it answered
 * "unloading".
 */
#include "late.h"
#include "sim_api.h"

#include <stdio.h>

#define MIB	  (1ul << 20)
#define UNLOADING 4

static void *blocks[BLOCKS];
static unsigned long allocations, frees, unloading, live, streams;

static void count(int error, unsigned long *counted)
{
	*counted += error == 0;
	unloading += error == UNLOADING;
}

void take(unsigned long bytes)
{
	void *memory;
	int error = cudaMalloc(&memory, bytes);

	count(error, &allocations);
	live += error ? 0 : bytes;
}

void take_blocks(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		count(cudaMalloc(&blocks[i], MIB), &allocations);
		live += MIB;
	}
}

/* What is freed while CUDA unloads is gone with it. */
void release(int block)
{
	count(cudaFree(blocks[block]), &frees);
	live -= MIB;
}

void make_stream(void)
{
	CUstream stream;

	count(cuStreamCreate(&stream, 1), &streams);
}

void print_books(void)
{
	printf("{\"allocations\": %lu, \"frees\": %lu, \"unloading\": %lu, \"live\": %lu, "
	       "\"streams\": %lu}\n",
	       allocations, frees, unloading, live, streams);
	fflush(stdout);
}
