/*
 * Signals for GPUMEMTRACE_SIGNAL=USR1, in the way its first argument names:
 *   once     one signal between two allocations
 *   before   the program's own handler was there first
 *   after    it is installed later
 *   storm    threads allocate and free while signals come
 * Prints how often its own handler ran.
 */
#include "cuda_calls.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define THREADS 3
#define SIGNALS 100

static volatile sig_atomic_t handled;
static int stop;

static void own(int number)
{
	(void)number;
	handled++;
}

static void handle(void)
{
	struct sigaction action = {.sa_handler = own};

	sigaction(SIGUSR1, &action, NULL);
}

static void *work(void *unused)
{
	void *block;

	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		if (cudaMalloc(&block, 4096) || cudaFree(block))
			return (void *)1;
	}
	return NULL;
}

static int storm(void)
{
	pthread_t threads[THREADS];
	void *failed;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 2;
	for (int i = 0; i < SIGNALS;
	     i++) /* to a thread that is at work, most likely in the tracker */
		pthread_kill(threads[i % THREADS], SIGUSR1);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS; i++)
		if (pthread_join(threads[i], &failed) || failed)
			return 2;
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	void *first, *second;

	if (strcmp(how, "before") == 0)
		handle();
	if (cudaMalloc(&first, 1 << 20))
		return 2;
	if (strcmp(how, "after") == 0)
		handle();
	if (strcmp(how, "storm") == 0 ? storm() : raise(SIGUSR1))
		return 2;
	if (cudaMalloc(&second, 1 << 20))
		return 2;
	printf("{\"handled\": %d}\n", (int)handled);
	return 0;
}
