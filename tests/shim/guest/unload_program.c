/*
 * Opens, uses and closes plug-ins that carry a cudart of their own, hundreds of times, while other
 * threads allocate, start and end. Arguments: plug-ins. Prints its books.
 */
#include "cuda_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS	100
#define THREADS 4

static uint64_t allocations;
static int stop;

static void *short_life(void *unused)
{
	void *memory;

	(void)unused;
	if (cudaMalloc(&memory, 4096) || cudaFree(memory))
		abort();
	__atomic_fetch_add(&allocations, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *work(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		pthread_t thread;

		short_life(NULL);
		if (pthread_create(&thread, NULL, short_life, NULL))
			abort();
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void use_plugin(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *memory;
	int (*allocate)(void **, unsigned long), (*release)(void *);

	if (!library)
		abort();
	allocate = (int (*)(void **, unsigned long))dlsym(library, "plugin_allocate");
	release = (int (*)(void *))dlsym(library, "plugin_release");
	if (allocate(&memory, 8192) || release(memory))
		abort();
	__atomic_fetch_add(&allocations, 1, __ATOMIC_SEQ_CST);
	dlclose(library);
}

/* As programs look for a GPU: open, ask by dlsym, close. */
static void probe_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CUresult (*info)(size_t *, size_t *);
	size_t free_bytes, total_bytes;

	if (!library)
		abort();
	info = (CUresult (*)(size_t *, size_t *))dlsym(library, "cuMemGetInfo_v2");
	if (!info)
		abort();
	info(&free_bytes, &total_bytes);
	dlclose(library);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int i, round;

	for (i = 0; i < 10; i++) /* the driver comes and goes before anything keeps it */
		probe_driver();
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 1; i < argc; i++)
			use_plugin(argv[i]);
		probe_driver();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("{\"live\": 0, \"allocations\": %llu}\n", (unsigned long long)allocations);
	return 0;
}
