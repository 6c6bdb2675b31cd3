/*
 * A busy program whose results do not depend on who looks on:
 *
 *   load FOLDER PLUGIN LIBRARY [BEFORE_MIB]
 *
 * Threads allocate and free device memory, by the runtime and by function pointers of the driver
 * (from LIBRARY, libcuda), compute in floating point, open and close PLUGIN, fork, wait in several
 * calls, and allocate from the heap. It runs until FOLDER/stop exists; FOLDER/leak makes every
 * sixteenth round of one thread leak 1 MiB, and FOLDER/free frees the BEFORE_MIB that were
 * allocated at the start. At the end it prints its books as JSON.
 */
#include "cuda_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HELD 16

static const char *folder, *plugin, *library;
static volatile bool stop;
static unsigned long rounds, calls, failed, wrong, interrupted, forks, opens, leaked;

static void count(unsigned long *what, unsigned long number)
{
	__atomic_fetch_add(what, number, __ATOMIC_RELAXED);
}

static bool wants(const char *what)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, what);
	return access(path, F_OK) == 0;
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The same value in every round, unless a register was damaged meanwhile. */
static __attribute__((noinline)) double compute(void)
{
	double sum = 0;

	for (int i = 1; i < 2000; i++)
		sum += sqrt(i) * sin(i) / (1 + i % 7);
	return sum;
}

__attribute__((noinline)) void leak_here(void)
{
	void *memory;

	if (cudaMalloc(&memory, 1 << 20) == GM_CUDA_SUCCESS)
		count(&leaked, 1);
}

static void *runtime_thread(void *seed)
{
	void *held[HELD] = {NULL};
	uint64_t state = (uintptr_t)seed;
	double first = compute();
	bool leaks = (uintptr_t)seed == 1;

	for (unsigned long round = 0; !stop; round++) {
		unsigned slot = next(&state) % HELD;

		if (held[slot])
			count(&failed, cudaFree(held[slot]) != GM_CUDA_SUCCESS);
		count(&failed,
		      cudaMalloc(&held[slot], 256 + next(&state) % 100000) != GM_CUDA_SUCCESS);
		count(&calls, 2);
		count(&wrong, compute() != first);
		count(&rounds, 1);
		if (leaks && round % 16 == 0 && wants("leak"))
			leak_here();
	}
	for (unsigned i = 0; i < HELD; i++)
		if (held[i])
			count(&failed, cudaFree(held[i]) != GM_CUDA_SUCCESS);
	return NULL;
}

static void *driver_thread(void *unused)
{
	void *handle = dlopen(library, RTLD_NOW);
	CUresult (*allocate)(CUdeviceptr *, size_t) = dlsym(handle, "cuMemAlloc_v2");
	CUresult (*release)(CUdeviceptr) = dlsym(handle, "cuMemFree_v2");
	uint64_t state = 99;

	(void)unused;
	cudaFree(NULL); /* makes the primary context current */
	while (!stop) {
		CUdeviceptr memory = 0;

		count(&failed, allocate(&memory, 512 + next(&state) % 5000) != GM_CUDA_SUCCESS);
		count(&failed, release(memory) != GM_CUDA_SUCCESS);
		count(&calls, 2);
		sched_yield();
	}
	return NULL;
}

static void *loader_thread(void *unused)
{
	(void)unused;
	while (!stop) {
		void *handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL), *memory = NULL;
		int (*allocate)(void **, unsigned long) =
			handle ? (int (*)(void **, unsigned long))dlsym(handle, "plugin_allocate")
			       : NULL;
		int (*release)(void *) =
			handle ? (int (*)(void *))dlsym(handle, "plugin_release") : NULL;

		if (!allocate || !release) {
			count(&failed, 1);
			return NULL;
		}
		count(&failed, allocate(&memory, 4096) != 0);
		count(&failed, release(memory) != 0);
		count(&opens, 1);
		dlclose(handle);
	}
	return NULL;
}

static void *heap_thread(void *unused)
{
	uint64_t state = 7;
	char *held[64] = {NULL};

	(void)unused;
	while (!stop)
		for (int i = 0; i < 1000; i++) {
			unsigned slot = next(&state) % 64;
			size_t bytes = 16 + next(&state) % 3000;

			free(held[slot]);
			held[slot] = malloc(bytes);
			memset(held[slot], (int)bytes, bytes);
		}
	for (unsigned i = 0; i < 64; i++)
		free(held[i]);
	return NULL;
}

static void *fork_thread(void *unused)
{
	(void)unused;
	while (!stop) {
		int status;
		pid_t child = fork();

		if (child == 0)
			_exit(7);
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
		    WEXITSTATUS(status) != 7)
			count(&failed, 1);
		count(&forks, 1);
		usleep(2000);
	}
	return NULL;
}

/* Calls that a stop alone would end with EINTR, and calls that go on. */
static void *waiting_thread(void *unused)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), ends[2];
	struct epoll_event event;
	const struct timespec time = {.tv_nsec = 3000000};

	(void)unused;
	if (pipe(ends))
		return NULL;
	while (!stop) {
		struct pollfd one = {ends[0], POLLIN, 0};

		count(&interrupted, epoll_wait(epoll, &event, 1, 5) < 0 && errno == EINTR);
		count(&interrupted, nanosleep(&time, NULL) < 0 && errno == EINTR);
		count(&interrupted, poll(&one, 1, 3) < 0 && errno == EINTR);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	void *(*const functions[])(void *) = {runtime_thread, runtime_thread, driver_thread,
					      loader_thread,  heap_thread,    fork_thread,
					      waiting_thread};
	enum { THREADS = sizeof(functions) / sizeof(*functions) };
	pthread_t threads[THREADS];
	unsigned long before = argc > 4 ? strtoul(argv[4], NULL, 0) : 0, i;
	void **memory = calloc(before + 1, sizeof(*memory));
	char path[4096];
	FILE *ready;

	if (argc < 4 || !memory)
		return 2;
	folder = argv[1];
	plugin = argv[2];
	library = argv[3];
	for (i = 0; i < before; i++)
		count(&failed, cudaMalloc(&memory[i], 1 << 20) != GM_CUDA_SUCCESS);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, functions[i], (void *)(i + 1)))
			return 2;
	snprintf(path, sizeof(path), "%s/ready", folder);
	ready = fopen(path, "w");
	if (ready)
		fclose(ready);
	while (!wants("stop")) {
		if (before && wants("free")) {
			while (before)
				count(&failed, cudaFree(memory[--before]) != GM_CUDA_SUCCESS);
			snprintf(path, sizeof(path), "%s/freed", folder);
			ready = fopen(path, "w");
			if (ready)
				fclose(ready);
		}
		usleep(5000);
	}
	stop = true;
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("{\"rounds\": %lu, \"calls\": %lu, \"failed\": %lu, \"wrong\": %lu, "
	       "\"interrupted\": %lu, \"forks\": %lu, \"opens\": %lu, \"leaked\": %lu, "
	       "\"result\": \"%a\"}\n",
	       rounds, calls, failed, wrong, interrupted, forks, opens, leaked, compute());
	return 0;
}
