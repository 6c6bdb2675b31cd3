/*
 * Memory and threads: threads NAME [END]. Workers that leave something behind when they end, and
 * workers that do not.
 */
#include "gpu.h"

#include <pthread.h>

#define STEPS 200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void in_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, run, argument));
	MUST(pthread_join(thread, NULL));
}

/* A thread per request; its workspace is meant to be freed by a thread-local destructor that nobody
 * registered. */
PLACE static void *serve_request(void *unused)
{
	void *workspace = device_memory(2 * MIB);

	(void)workspace;
	clean_step(8 * MIB);
	return unused;
}

static void per_thread(void)
{
	for (volatile int i = 0; i < STEPS; i++)
		in_thread(serve_request, NULL);
}

/* The same with the free. */
PLACE static void *serve_and_free(void *unused)
{
	void *workspace = device_memory(2 * MIB);

	clean_step(8 * MIB);
	MUST(cudaFree(workspace));
	return unused;
}

static void per_thread_freed(void)
{
	for (volatile int i = 0; i < STEPS; i++)
		in_thread(serve_and_free, NULL);
}

/* Four workers live as long as the program, each with a workspace of its own; one of them keeps its
 * results. */
PLACE static void keep_result(void)
{
	void *result = device_memory(MIB);

	pthread_mutex_lock(&lock);
	keep(result);
	pthread_mutex_unlock(&lock);
}

PLACE static void *worker(void *leaks)
{
	void *workspace = device_memory(32 * MIB);

	for (volatile int i = 0; i < STEPS; i++) {
		void *scratch = device_memory(4 * MIB);

		pthread_mutex_lock(&lock); /* work() is of one thread at a time */
		work(STEP_LAUNCHES);
		pthread_mutex_unlock(&lock);
		if (leaks)
			keep_result();
		MUST(cudaFree(scratch));
	}
	return workspace;
}

static void workers(unsigned count, unsigned leaking)
{
	pthread_t threads[8];

	for (unsigned i = 0; i < count; i++)
		MUST(pthread_create(&threads[i], NULL, worker, i < leaking ? &lock : NULL));
	for (unsigned i = 0; i < count; i++)
		MUST(pthread_join(threads[i], NULL));
}

static void one_of_four(void)
{
	workers(4, 1);
}

static void two_of_eight(void)
{
	workers(8, 2);
}

static void four_workers(void)
{
	workers(4, 0);
}

/* The same worker's steps, one thread after the other: the first of four keeps its results. */
static void first_of_four_in_turn(void)
{
	for (volatile unsigned i = 0; i < 4; i++)
		in_thread(worker, i ? NULL : &lock);
}

/* Loaders convert their part of a model and end; then four workers serve. */
PLACE static void *load_shard(void *unused)
{
	for (volatile int i = 0; i < 40; i++) {
		void *stored = device_memory(8 * MIB), *converted = device_memory(4 * MIB);

		pthread_mutex_lock(&lock);
		keep(converted);
		work(4);
		pthread_mutex_unlock(&lock);
		MUST(cudaFree(stored));
	}
	return unused;
}

static void loaders(unsigned count)
{
	pthread_t threads[4];

	for (unsigned i = 0; i < count; i++)
		MUST(pthread_create(&threads[i], NULL, load_shard, NULL));
	for (unsigned i = 0; i < count; i++)
		MUST(pthread_join(threads[i], NULL));
	workers(4, 0);
}

static void one_loader(void)
{
	loaders(1);
}

static void four_loaders(void)
{
	loaders(4);
}

/* One thread allocates, another works and frees: a pipeline, eight deep. */
static struct {
	void *slots[8];
	unsigned filled;
	pthread_cond_t changed;
} pipe_line = {.changed = PTHREAD_COND_INITIALIZER};

PLACE static void *produce(void *unused)
{
	for (volatile int i = 0; i < 3 * STEPS; i++) {
		void *batch = device_memory(4 * MIB);

		pthread_mutex_lock(&lock);
		while (pipe_line.filled == 8)
			pthread_cond_wait(&pipe_line.changed, &lock);
		pipe_line.slots[pipe_line.filled++] = batch;
		pthread_cond_broadcast(&pipe_line.changed);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void pipeline(void)
{
	pthread_t producer;

	work(1);
	MUST(pthread_create(&producer, NULL, produce, NULL));
	for (volatile int i = 0; i < 3 * STEPS; i++) {
		void *batch;

		pthread_mutex_lock(&lock);
		while (pipe_line.filled == 0)
			pthread_cond_wait(&pipe_line.changed, &lock);
		batch = pipe_line.slots[--pipe_line.filled];
		pthread_cond_broadcast(&pipe_line.changed);
		pthread_mutex_unlock(&lock);
		work(STEP_LAUNCHES);
		MUST(cudaFree(batch));
	}
	MUST(pthread_join(producer, NULL));
}

static const struct behaviour behaviours[] = {
	{"per-thread", per_thread},	{"per-thread-freed", per_thread_freed},
	{"one-of-four", one_of_four},	{"two-of-eight", two_of_eight},
	{"four-workers", four_workers}, {"first-of-four-in-turn", first_of_four_in_turn},
	{"one-loader", one_loader},	{"four-loaders", four_loaders},
	{"pipeline", pipeline},
};

BEHAVIOURS(behaviours)
