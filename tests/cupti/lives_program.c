/*
 * Lives of contexts, calls, threads and processes, for lives.bats.
 */
#include "cuda_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB	(1ull << 20)
#define THREADS 1500

static void ok(CUresult error)
{
	if (error) {
		fprintf(stderr, "error %d\n", error);
		exit(2);
	}
}

static CUdeviceptr take(size_t bytes)
{
	CUdeviceptr memory;

	ok(cuMemAlloc_v2(&memory, bytes));
	return memory;
}

static void begin(void)
{
	CUcontext context;

	ok(cuInit(0));
	ok(cuDevicePrimaryCtxRetain(&context, 0));
	ok(cuCtxSetCurrent(context));
}

static void context(void)
{
	void (*end_context)(CUcontext) =
		(void (*)(CUcontext))dlsym(RTLD_DEFAULT, "gpusim_end_context");
	CUcontext primary, own;

	if (!end_context)
		exit(3);
	ok(cuCtxGetCurrent(&primary));
	take(3 * MIB);
	ok(cuCtxCreate_v2(&own, 0, 0));
	take(5 * MIB);
	end_context(own);
	ok(cuCtxSetCurrent(primary));
}

static void *allocate(void *unused)
{
	CUcontext context;

	(void)unused;
	ok(cuDevicePrimaryCtxRetain(&context, 0));
	ok(cuCtxSetCurrent(context));
	take(512);
	return NULL;
}

static void threads(void)
{
	pthread_t thread;
	int i;

	for (i = 0; i < THREADS; i++) {
		pthread_create(&thread, NULL, allocate, NULL);
		pthread_join(thread, NULL);
	}
}

static void *allocate_on(void *begun)
{
	CUdeviceptr memory;

	begin();
	pthread_barrier_wait(begun);
	for (;;)
		if (!cuMemAlloc_v2(&memory, 512))
			cuMemFree_v2(memory);
	return NULL;
}

/* The process ends with threads in the midst of CUDA. */
static void busy(void)
{
	static pthread_barrier_t begun;
	pthread_t thread;
	int i;

	pthread_barrier_init(&begun, NULL, 5);
	for (i = 0; i < 4; i++)
		pthread_create(&thread, NULL, allocate_on, &begun);
	pthread_barrier_wait(&begun);
	for (i = 0; i < 2000; i++)
		ok(cuMemFree_v2(take(1024)));
	take(3 * MIB);
}

/* CUDA that was started cannot be used in a child; here the parent had only looked for it. */
static void forked(void)
{
	size_t free_bytes, total;
	pid_t child;

	if (cuMemGetInfo_v2(&free_bytes, &total) == 0)
		exit(4); /* not started yet, so it cannot say */
	child = fork();
	begin();
	if (child == 0) {
		take(MIB);
		exit(0);
	}
	take(3 * MIB);
	waitpid(child, NULL, 0);
	printf("{\"parent\": %d, \"child\": %d}\n", (int)getpid(), (int)child);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int i;

	if (!strcmp(what, "unset"))
		unsetenv("CUDA_INJECTION64_PATH");
	if (!strcmp(what, "fork")) {
		forked();
		return 0;
	}
	begin();
	if (!strcmp(what, "context"))
		context();
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "leak") || !strcmp(what, "unset"))
		take(3 * MIB);
	else if (!strcmp(what, "busy"))
		busy();
	else if (!strcmp(what, "many"))
		for (i = 0; i < 10; i++)
			take(MIB);
	return 0;
}
