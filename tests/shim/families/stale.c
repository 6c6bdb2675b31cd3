/*
 * A thread goes on while CUDA unloads: its allocations come back 4 and leave its pointers as they
 * were, and it frees these, which are the addresses of other threads' blocks by now. Those blocks
 * are live at the end. A thread that frees another's block for the first time means that block.
 */
#include "family.h"

#include <pthread.h>

#define KINDS	 3
#define ATTEMPTS 256
#define BYTES	 (3 * MIB)
#define HANDED	 (5 * MIB)

static void *stale[KINDS], *handed;
static pthread_barrier_t moment;
static pthread_t thread, freeing;

static int allocate(int kind, void **memory)
{
	if (kind == 0)
		return cudaMalloc(memory, BYTES);
	return kind == 1 ? cudaMallocAsync(memory, BYTES, NULL) : cudaMallocHost(memory, BYTES);
}

static int release(int kind, void *memory)
{
	if (kind == 0)
		return cudaFree(memory);
	return kind == 1 ? cudaFreeAsync(memory, NULL) : cudaFreeHost(memory);
}

/* Until CUDA gives the address that the other thread freed. */
NAMED void allocate_again(int kind)
{
	void *memory = NULL;
	int i;

	for (i = 0; i < ATTEMPTS && memory != stale[kind]; i++)
		OK(allocate(kind, &memory));
	OK(memory != stale[kind]);
}

static void *go_on(void *unused)
{
	int kind;

	(void)unused;
	for (kind = 0; kind < KINDS; kind++) {
		OK(allocate(kind, &stale[kind]));
		OK(release(kind, stale[kind]));
	}
	pthread_barrier_wait(&moment); /* main allocates */
	pthread_barrier_wait(&moment); /* CUDA has unloaded */
	for (kind = 0; kind < KINDS; kind++) {
		FAILS(allocate(kind, &stale[kind]), 4);
		FAILS(release(kind, stale[kind]), 4);
	}
	return NULL;
}

/* The address was freed before, too, but this thread's own allocations did not fail. */
static void *free_for_main(void *unused)
{
	(void)unused;
	FAILS(cudaFree(handed), 4);
	return NULL;
}

static void late(void)
{
	pthread_barrier_wait(&moment);
	pthread_join(thread, NULL);
	if (pthread_create(&freeing, NULL, free_for_main, NULL) || pthread_join(freeing, NULL))
		_Exit(3);
}

int main(void)
{
	int kind;

	atexit(late); /* before the first CUDA call, so it runs after cudart's own handlers */
	pthread_barrier_init(&moment, NULL, 2);
	OK(cudaMalloc(&handed, HANDED));
	OK(cudaFree(handed));
	OK(cudaMalloc(&handed, HANDED));
	pthread_create(&thread, NULL, go_on, NULL);
	pthread_barrier_wait(&moment);
	for (kind = 0; kind < KINDS; kind++)
		allocate_again(kind);
	expect("usage.device.0.current_bytes", BYTES);
	expect("usage.async.0.current_bytes", BYTES);
	expect("usage.pinned.host.current_bytes", BYTES);
	expect("site.allocate_again.live_count", KINDS);
	expect("errors", 0);
	return 0;
}
