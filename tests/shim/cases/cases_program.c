/*
 * Bugs that real people had, each in a few lines: the argument is the number of the case in
 * cases.md, with a letter where it has two forms. Ends with 0 unless the case could not be set up
 * (99).
 */
#include "cuda_calls.h"
#include "gpumemtrace.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ull << 20)

static void need(int ok)
{
	if (!ok)
		_exit(99);
}

static void *take(size_t bytes)
{
	void *block = NULL;

	need(cudaMalloc(&block, bytes) == 0);
	return block;
}

/* A step's working memory: what a loop leaves beside it repeats, which a set-up does not. */
static void work(void)
{
	void *scratch = take(MIB);

	need(cudaFree(scratch) == 0);
}

/* 2: the callback that would release an import was never set. */
static void never_released(void)
{
	for (int i = 0; i < 20; i++) {
		take(64 * MIB);
		work();
	}
}

/* 3: every read-back registers its host memory and never unregisters it. */
static void registered(void)
{
	char *host = aligned_alloc(4096, 32 * 65536);
	void *device = take(65536);

	for (int i = 0; i < 16; i++) {
		need(cudaHostRegister(host + i * 65536, 65536, 0) == 0);
		work();
	}
	need(cudaHostRegister(host, 65536, 0) == 712); /* again: refused, counted once */
	cudaGetLastError();
	cudaFree(device);
}

/* 6: pinned memory that is given to the wrong free, so that CUDA never hears of it. */
static void pinned_forgotten(void)
{
	void *context, *host;
	int device = 0;

	need(cuInit(0) == 0 && cuDeviceGet(&device, 0) == 0);
	need(cuDevicePrimaryCtxRetain((CUcontext *)&context, device) == 0);
	need(cuCtxSetCurrent((CUcontext)context) == 0);
	for (int i = 0; i < 8; i++)
		need(cuMemAllocHost_v2(&host, 2 * MIB) == 0);
}

/* 7: nothing is asked for, nothing is freed. */
static void nothing(void)
{
	void *a = (void *)1, *b = (void *)1;

	need(cudaMalloc(&a, 0) == 0 && cudaMalloc(&b, 0) == 0 && !a && !b);
	need(cudaMallocHost(&a, 0) == 0 && cudaMallocAsync(&b, 0, NULL) == 0);
	need(cudaFree(NULL) == 0 && cudaFree(a) == 0 && cudaFreeHost(NULL) == 0);
	need(cudaFreeAsync(NULL, NULL) == 0 && cudaFreeArray(NULL) == 0);
	cudaFree(take(4096));
}

__attribute__((noinline)) static void *victim(size_t bytes)
{
	return take(bytes);
}

__attribute__((noinline)) static void second_free(void *block, int wanted)
{
	need(cudaFree(block) == (cudaError_t)wanted);
	cudaGetLastError();
}

/* 8: freed twice; in the second form somebody else was given the address meanwhile. */
static void double_free(int reissued)
{
	void *block = take(3 * MIB), *other;

	need(cudaFree(block) == 0);
	if (!reissued) {
		second_free(block, 1);
		return;
	}
	other = victim(3 * MIB);
	need(other == block); /* the address comes back at once */
	second_free(block, 0);
	second_free(other, 1); /* its owner's own free */
}

/* 18: a pool of 256 buffers, best fit: each request is a little larger than any that is cached. */
static void best_fit_pool(void)
{
	for (size_t i = 0; i < 256; i++) {
		take(64 * 1024 + i * 256);
		work();
	}
}

/* 19: 30 % and 30 % taken, one goes to a cache, 60 % is asked for. */
static void cached_beside(int release)
{
	size_t memory = 0, unused, share;
	void *first, *cached, *large = NULL;

	need(cudaMemGetInfo(&unused, &memory) == 0);
	share = unused / 10;
	first = take(3 * share);
	cached = take(3 * share);
	for (int attempt = 0; attempt < 2; attempt++) {
		if (cudaMalloc(&large, 6 * share) == 0)
			break;
		cudaGetLastError();
		if (!release)
			break;
		cudaFree(cached);
		cached = NULL;
	}
	need((large != NULL) == release);
	cudaFree(first);
	cudaFree(cached);
	cudaFree(large);
}

/* 20: managed memory that nobody frees. */
static void managed(void)
{
	void *block;

	for (int i = 0; i < 10; i++)
		need(cudaMallocManaged(&block, MIB, 1) == 0);
}

/* 32: a forked worker inherits everything and does no CUDA; the parent dies. */
static void forked(void)
{
	int alive[2]; /* whose writing end the parent alone has: its end is the end of the file */
	char byte;

	need(pipe(alive) == 0);
	take(MIB);
	if (fork() == 0) {
		close(alive[1]);
		need(read(alive[0], &byte, 1) == 0);
		exit(0);
	}
	kill(getpid(), SIGKILL);
}

/* 37: an OOM that the program swallows. */
static void swallowed(void)
{
	void *block;

	need(cudaMalloc(&block, 1ull << 45) == 2);
	cudaGetLastError();
	cudaFree(take(MIB));
}

/* 38: killed in the middle. */
static void killed(void)
{
	for (int i = 0; i < 12; i++) {
		take(MIB);
		work();
	}
	kill(getpid(), SIGKILL);
}

/* A loop as it should be, and the same with one block forgotten each step. */
static void steps(int count, int leak)
{
	void *weights = take(8 * MIB);

	for (int i = 0; i < count; i++) {
		void *input = take(MIB), *output = take(2 * MIB);

		gpumemtrace_mark("step");
		if (!leak)
			cudaFree(output);
		cudaFree(input);
	}
	if (!leak)
		cudaFree(weights);
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";

	if (!strcmp(which, "clean") || !strcmp(which, "leaking"))
		steps(12, *which == 'l');
	else if (!strcmp(which, "2"))
		never_released();
	else if (!strcmp(which, "3"))
		registered();
	else if (!strcmp(which, "6"))
		pinned_forgotten();
	else if (!strcmp(which, "7"))
		nothing();
	else if (!strcmp(which, "8a") || !strcmp(which, "8b"))
		double_free(which[1] == 'b');
	else if (!strcmp(which, "18"))
		best_fit_pool();
	else if (!strcmp(which, "19a") || !strcmp(which, "19b"))
		cached_beside(which[2] == 'b');
	else if (!strcmp(which, "20"))
		managed();
	else if (!strcmp(which, "32"))
		forked();
	else if (!strcmp(which, "37"))
		swallowed();
	else if (!strcmp(which, "38"))
		killed();
	else
		return 99;
	return 0;
}
