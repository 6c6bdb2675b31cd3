/*
 * Threads that end the process, or try to, while others do so or allocate. The argument names the
 * way. Prints how many allocations were made, where that is known.
 */
#include "cuda_calls.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS	 3
#define ROUNDS	 4000
#define AT_END	 64
#define EXECS	 60

static uint64_t allocations;
static int stop, failed;

static int stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static void try_exec(void)
{
	char *const arguments[] = {(char *)"x", NULL};

	execv("/nowhere/at/all", arguments);
	__atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
}

static void *fail_execs(void *unused)
{
	(void)unused;
	while (!stopped())
		try_exec();
	return NULL;
}

/* Blocks of growing number, so that the file and its history need new parts all the time. */
static void *allocate(void *unused)
{
	void *kept = NULL;
	int i;

	(void)unused;
	for (i = 0; i < ROUNDS; i++) {
		void *memory;

		if (cudaMalloc(&memory, 512) || (i % 4 && cudaFree(memory)))
			return &failed;
		if (i % 4 == 0)
			kept = memory;
		__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
	}
	return kept ? NULL : &failed;
}

static void *end_now(void *unused)
{
	(void)unused;
	while (!stopped())
		;
	_exit(42);
}

static __attribute__((noinline)) void at_the_end(void)
{
	void *memory;
	int i;

	for (i = 0; i < AT_END; i++)
		cudaMalloc(&memory, 4096);
	__asm__ volatile("" ::: "memory");
}

static void start(pthread_t *threads, int count, void *(*function)(void *))
{
	int i;

	for (i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, function, NULL))
			_exit(3);
}

static int join(const pthread_t *threads, int count)
{
	int i, wrong = 0;
	void *result;

	for (i = 0; i < count; i++)
		wrong |= pthread_join(threads[i], &result) || result;
	return wrong;
}

static void *first_call(void *unused)
{
	void *memory;

	cudaMalloc(&memory, 512);
	return unused;
}

/* Ends the process, or has another take its place, as soon as the file that a thread opens has its
 * name. */
static int end_while_file_opens(const char *file, bool by_exec)
{
	char *const arguments[] = {(char *)"sh", (char *)"-c", (char *)"exit 42", NULL};
	pthread_t thread;

	start(&thread, 1, first_call);
	while (access(file, F_OK))
		;
	if (!by_exec)
		_exit(42);
	execv("/bin/sh", arguments);
	return 3;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	pthread_t failing[THREADS], others[THREADS];
	void *memory;
	int i;

	if (argc > 2)
		return end_while_file_opens(argv[2], !strcmp(way, "early-exec"));
	if (cudaMalloc(&memory, 12345))
		return 2;
	allocations = 1;
	if (!strcmp(way, "alone"))
		return 42;
	if (!strcmp(way, "daemon"))
		return daemon(1, 0) ? 3 : 0;
	if (!strcmp(way, "end")) { /* several threads leave at the same moment */
		start(others, THREADS, end_now);
		at_the_end();
		__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
		_exit(42);
	}
	start(failing, THREADS, fail_execs);
	while (!__atomic_load_n(&failed, __ATOMIC_ACQUIRE))
		;
	if (!strcmp(way, "exit")) {
		at_the_end();
		exit(42);
	}
	if (!strcmp(way, "exec")) {
		char *const arguments[] = {argv[0], (char *)"alone", NULL};

		at_the_end();
		execv(argv[0], arguments);
		return 3;
	}
	start(others, THREADS, allocate);
	for (i = 0; i < EXECS; i++)
		try_exec();
	if (join(others, THREADS))
		return 3;
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	if (join(failing, THREADS))
		return 3;
	printf("{\"allocations\": %llu}\n", (unsigned long long)allocations);
	return 42;
}
