/*
 * Programs that run out of memory, one by one: exhaust NAME. Each prints what CUDA answered as
 * JSON; the tests hold the report to it. GPUSIM_MEMORY is 8 GiB unless a test says otherwise.
 */
#include "cuda_calls.h"
#include "gpumemtrace.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

#define MIB	((size_t)1 << 20)
#define GIB	((size_t)1 << 30)
#define NOTHING ((void *)(uintptr_t)0x1) /* an out-pointer's value before the call */

static void *must(size_t bytes)
{
	void *pointer = NOTHING;

	if (cudaMalloc(&pointer, bytes)) {
		fprintf(stderr, "cudaMalloc of %zu failed\n", bytes);
		exit(3);
	}
	return pointer;
}

/* A call that is to fail: CUDA's answer, its last error, the out-pointer. */
static int refused(size_t bytes)
{
	void *pointer = NOTHING;
	int error = cudaMalloc(&pointer, bytes);

	if (error != 2 || pointer || cudaGetLastError() != 2 || cudaGetLastError() != 0) {
		fprintf(stderr, "cudaMalloc of %zu answered %d\n", bytes, error);
		exit(3);
	}
	return 1;
}

/* cumo, cupy#1256: the live sum does not fit. Swallowed (torchtitan#2362): the status stays 0. */
static void once(void)
{
	must(5 * GIB);
	refused(4 * GIB);
}

/* cupy#1256: 30 %, 30 %, one to a pool, 60 %; the pool gives back and the request is made again. */
static void recovered(void)
{
	void *first = must(2 * GIB), *second;

	second = must(2 * GIB);
	refused(4 * GIB);
	cudaFree(first);
	must(4 * GIB);
	cudaFree(second);
}

/* llama.cpp#22107: a pool's buffers are all slightly too small; freeing some of them helps. */
static void pool(void)
{
	void *buffers[48];
	unsigned i;

	for (i = 0; i < 48; i++)
		buffers[i] = must((100 + i) * MIB);
	refused(3 * GIB);
	for (i = 0; i < 40; i++)
		cudaFree(buffers[i]);
	must(3 * GIB);
}

static void repeated(void)
{
	void *first = must(5 * GIB);

	refused(4 * GIB);
	refused(4 * GIB);
	refused(4 * GIB);
	cudaFree(first);
	must(4 * GIB);
}

static void given_up(void)
{
	must(5 * GIB);
	refused(4 * GIB);
	refused(4 * GIB);
	refused(4 * GIB);
}

/* Another size is another request: each ends what was open before. */
static void different(void)
{
	must(5 * GIB);
	refused(4 * GIB);
	refused(4 * GIB + MIB);
	refused(4 * GIB);
	must(MIB);
	refused(4 * GIB);
}

static void *in_thread(void *bytes)
{
	must(*(size_t *)bytes);
	return NULL;
}

/* What another thread does meanwhile neither helps nor ends the chain. */
static void threads(void)
{
	size_t small = MIB, same = 2 * GIB;
	void *first = must(5 * GIB);
	pthread_t thread;

	refused(4 * GIB);
	pthread_create(&thread, NULL, in_thread, &small);
	pthread_join(thread, NULL);
	cudaFree(first);
	pthread_create(&thread, NULL, in_thread, &same);
	pthread_join(thread, NULL);
	must(4 * GIB);
}

static void killed(void)
{
	once();
	raise(SIGKILL);
}

static void host(void)
{
	void *pointer = NOTHING;
	int error = cudaHostAlloc(&pointer, GIB, 0);

	if (error != 2)
		exit(3);
}

/* A mistake is no want of memory. */
static void mistaken(void)
{
	void *pointer;

	must(MIB);
	if (cudaMallocManaged(&pointer, MIB, 0xff) == 0)
		exit(3);
}

static void *take_and_drop(void *unused)
{
	void *pointer;

	(void)unused;
	if (cudaMallocAsync_ptsz(&pointer, 3 * GIB, 0) || cudaFreeAsync_ptsz(pointer, 0))
		exit(3);
	return NULL;
}

/* rmm#1245: two threads' streams share a pool; what they freed is not had by a third in one piece.
 */
static void pending(void)
{
	pthread_t first, second;
	void *pointer;

	cudaFree(NULL);
	pthread_create(&first, NULL, take_and_drop, NULL);
	pthread_join(first, NULL);
	pthread_create(&second, NULL, take_and_drop, NULL);
	pthread_join(second, NULL);
	if (cudaMallocAsync_ptsz(&pointer, 5 * GIB, 0) != 2)
		exit(3);
}

/* As much as there is, GiB by GiB. */
static void fill(void)
{
	size_t free_bytes, total;
	void *pointer;
	int count = 0;

	cudaMemGetInfo(&free_bytes, &total);
	printf("{\"free_before\": %zu, \"total\": %zu, ", free_bytes, total);
	while (count < 64 && cudaMalloc(&pointer, GIB) == 0)
		count++;
	cudaGetLastError();
	cudaMemGetInfo(&free_bytes, &total);
	printf("\"blocks\": %d, \"free\": %zu}\n", count, free_bytes);
}

/* Twenty calls; which of them failed, as a string. */
static void twenty(void)
{
	char answers[21] = "";
	void *pointer;
	int i;

	for (i = 0; i < 20; i++) {
		int error;

		pointer = NOTHING;
		error = cudaMalloc(&pointer, MIB);
		answers[i] = error ? 'x' : '.';
		if (error && (error != 2 || pointer || cudaGetLastError() != 2))
			exit(3);
		if (!error)
			cudaFree(pointer);
	}
	printf("{\"answers\": \"%s\"}\n", answers);
}

/* One call of each family of allocations under GPUMEMTRACE_FAIL=1+: every one is refused. */
static void families(void)
{
	struct cudaChannelFormatDesc format = {32, 0, 0, 0, 2};
	cudaArray_t array = NOTHING;
	void *p[6];
	size_t pitch;
	int failed = 0, i;
	CUdeviceptr direct = 1;
	unsigned int none = 0;

	for (i = 0; i < 6; i++)
		p[i] = NOTHING;
	failed += cudaMalloc(&p[0], MIB) == 2 && !p[0];
	failed += cudaMallocManaged(&p[1], MIB, 1) == 2;
	failed += cudaMallocPitch(&p[2], &pitch, 1000, 1000) == 2;
	failed += cudaMallocAsync(&p[3], MIB, 0) == 2 && !p[3];
	failed += cudaMallocHost(&p[4], MIB) == 2;
	failed += cudaHostAlloc(&p[5], MIB, 0) == 2;
	failed += cudaMallocArray(&array, &format, 64, 64, none) == 2;
	cudaGetLastError();
	failed += cuMemAlloc_v2(&direct, MIB) == 2 && !direct;
	printf("{\"failed\": %d}\n", failed);
}

/* llama.cpp#19639: what is allocated stays flat, and yet each request costs 6.4 MiB more. */
static void requests(void)
{
	static const unsigned int image[16] = {0x464c457f};
	CUmodule module;
	CUfunction kernel;
	int i;

	cudaFree(NULL);
	if (cuModuleLoadData(&module, image) || cuModuleGetFunction(&kernel, module, "kernel"))
		exit(3);
	for (i = 0; i < 11; i++) {
		void *scratch = must(64 * MIB);

		if (cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL))
			exit(3);
		cudaFree(scratch);
		gpumemtrace_mark("request");
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} programs[] = {
	{"once", once},		{"recovered", recovered}, {"pool", pool},
	{"repeated", repeated}, {"given-up", given_up},	  {"different", different},
	{"threads", threads},	{"killed", killed},	  {"host", host},
	{"mistaken", mistaken}, {"pending", pending},	  {"fill", fill},
	{"twenty", twenty},	{"families", families},	  {"requests", requests},
};

int main(int argc, char **argv)
{
	unsigned i;

	for (i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		if (argc > 1 && !strcmp(argv[1], programs[i].name)) {
			programs[i].run();
			return 0;
		}
	return 2;
}
