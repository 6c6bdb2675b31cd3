/*
 * A program of the runtime API that leaks, frees, fails and peaks, and prints what it knows of
 * itself as JSON, to be compared with the report. Compiled against each cudart, at -O0 and -O2.
 */
#include "cuda_calls.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB (1ull << 20)

static unsigned long long live, peak, allocated, freed, count, frees, failures;

static void check(cudaError_t error, const char *what)
{
	if (error) {
		fprintf(stderr, "%s: error %d\n", what, (int)error);
		exit(2);
	}
}

static void book(unsigned long long bytes)
{
	live += bytes;
	allocated += bytes;
	count++;
	if (live > peak)
		peak = live;
}

static void unbook(unsigned long long bytes)
{
	live -= bytes;
	freed += bytes;
	frees++;
}

__attribute__((noinline)) static void *leak_here(size_t bytes)
{
	void *memory = NULL;

	check(cudaMalloc(&memory, bytes), "cudaMalloc");
	book(bytes);
	return memory;
}

__attribute__((noinline)) static void *take(size_t bytes)
{
	void *memory = NULL;

	check(cudaMalloc(&memory, bytes), "cudaMalloc");
	book(bytes);
	return memory;
}

int main(void)
{
	void *blocks[8], *async, *pinned, *managed, *pitched, *refused = (void *)1;
	size_t pitch = 0;
	int i;

	for (i = 0; i < 3; i++)
		leak_here(1000 + (size_t)i);
	for (i = 0; i < 8; i++)
		blocks[i] = take((size_t)(i + 1) * MIB);
	for (i = 0; i < 8; i++) {
		check(cudaFree(blocks[i]), "cudaFree");
		unbook((unsigned long long)(i + 1) * MIB);
	}
	check(cudaMallocAsync(&async, 3 * MIB, NULL), "cudaMallocAsync");
	book(3 * MIB);
	check(cudaFreeAsync(async, NULL), "cudaFreeAsync");
	unbook(3 * MIB);
	check(cudaMallocManaged(&managed, 2 * MIB, 1), "cudaMallocManaged");
	book(2 * MIB);
	check(cudaFree(managed), "cudaFree");
	unbook(2 * MIB);
	check(cudaMallocPitch(&pitched, &pitch, 1000, 1000), "cudaMallocPitch");
	book(pitch * 1000);
	check(cudaFree(pitched), "cudaFree");
	unbook(pitch * 1000);
	check(cudaMallocHost(&pinned, 4096), "cudaMallocHost");
	if (cudaMalloc(&refused, 1ull << 50) == 0 || refused)
		return 3;
	cudaGetLastError();
	failures++;
	check(cudaMalloc(&refused, 0), "cudaMalloc of nothing");
	check(cudaFree(NULL), "cudaFree of nothing");
	printf("{\"live\": %llu, \"live_count\": %llu, \"peak\": %llu, \"allocated\": %llu, "
	       "\"freed\": %llu, \"allocations\": %llu, \"frees\": %llu, \"failures\": %llu, "
	       "\"pinned\": 4096, \"leak\": 3003, \"leak_count\": 3}\n",
	       live, count - frees, peak, allocated, freed, count, frees, failures);
	return 0;
}
