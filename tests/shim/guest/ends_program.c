/*
 * Ends in the way its argument names, with one block live and threads that allocate for ever. What
 * the shell sees of the end must be what it would be without the shim.
 */
#include "cuda_calls.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 3
#define LIVE_BYTES 12345
#define MORE	   20000 /* blocks after an exec that failed */

extern char **environ;

static volatile uintptr_t nowhere = 8;
static uint64_t rounds;

/* A growing number of live blocks, so that the file grows while it ends. */
static void *work(void *unused)
{
	(void)unused;
	for (;;) {
		void *memory;

		if (cudaMalloc(&memory, 512))
			pause(); /* CUDA is being unloaded */
		__atomic_fetch_add(&rounds, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void start_threads(void)
{
	pthread_t thread;
	int i;

	for (i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, work, NULL);
	while (__atomic_load_n(&rounds, __ATOMIC_ACQUIRE) < 3000)
		sched_yield();
}

static void leave(int signal)
{
	(void)signal;
	_exit(42);
}

/* The handler has the least stack that programs give one. */
static void crash_with_handler(void)
{
	struct sigaction action = {.sa_handler = leave, .sa_flags = SA_ONSTACK};
	size_t bytes = 8192;
	char *page = mmap(NULL, bytes + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = page + 4096, .ss_size = bytes};

	mprotect(stack.ss_sp, bytes, PROT_READ | PROT_WRITE);
	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	*(volatile int *)nowhere = 1;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	void *live;

	if (cudaMalloc(&live, LIVE_BYTES))
		return 2;
	if (strcmp(way, "alone") && argc < 3)
		start_threads();
	if (!strcmp(way, "exit"))
		exit(42);
	if (!strcmp(way, "_exit"))
		_exit(42);
	if (!strcmp(way, "_Exit"))
		_Exit(42);
	if (!strcmp(way, "quick_exit"))
		quick_exit(42);
	if (!strcmp(way, "abort"))
		abort();
	if (!strcmp(way, "segv"))
		*(volatile int *)nowhere = 1;
	if (!strcmp(way, "segv-handler"))
		crash_with_handler();
	if (!strcmp(way, "exec")) {
		char *const arguments[] = {argv[0], (char *)"alone", NULL};

		execv(argv[0], arguments);
	}
	if (!strcmp(way, "failing-exec")) {
		int i;

		for (i = 0; i < 20; i++) {
			uint64_t before = __atomic_load_n(&rounds, __ATOMIC_ACQUIRE);

			execlp("/nowhere/at/all", "x", (char *)NULL);
			while (argc < 3 &&
			       __atomic_load_n(&rounds, __ATOMIC_ACQUIRE) < before + 100)
				sched_yield();
		}
		for (i = 0; i < MORE; i++)
			if (cudaMalloc(&live, 64))
				return 3;
	}
	return 42;
}
