/*
 * Allocates and frees from a given depth of calls, and prints as JSON what a pair took. The same
 * shape for malloc (what heaptrack is measured on) and for CUDA (what the shim is measured on):
 *
 *   load [--api malloc|device|async|block] [--depth FRAMES] [--inner FRAMES] [--sites N]
 *        [--threads N] [--warm N] [--pairs N] [--live N] [--bytes N] [--work STEPS]
 *
 * The frames from main to `depth - inner` stay as they are, the `inner` ones below are entered anew
 * for each pair, through `sites` different paths in turn: so many call stacks there are. `live`
 * allocations are made first, by the same paths, and stay; what one more takes among them is
 * measured on places that were used before: some are freed and made again, round after round.
 * Each thread makes `warm` pairs, at least one of each path, before the `pairs` that are measured:
 * what a thread or a file takes at first is not in the figures.
 * After each allocation and after each free the thread computes for so many STEPS, each of which
 * takes a nanosecond or two.
 *
 * Built with LOAD_BLOCKS, it also knows PyTorch's blocks: its hook is told of a block and of its
 * return, with the mutex of the block's device held, as PyTorch does. Thread i has device i % 16.
 */
#ifdef LOAD_REAL
#include <cuda_runtime_api.h>
#else
#include "cuda_calls.h"
#define cudaStreamPerThread ((cudaStream_t)2)
#endif

#ifdef LOAD_BLOCKS
#include "../../sim/torch/c10.h"
#endif

#include <getopt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BARRIER()    __asm__ volatile("" ::: "memory")
#define MOST_THREADS 256

enum api { API_MALLOC, API_DEVICE, API_ASYNC, API_BLOCK };

static enum api api = API_DEVICE;
static unsigned depth = 36, inner = 8, threads = 1;
static size_t sites = 16, pairs = 100000, live, warm, bytes = 64, steps;

struct work {
	size_t path;
	void **keep; /* where the allocation goes to stay; NULL: it is freed at once */
	int failed;
};

#ifdef LOAD_BLOCKS
#define DEVICES 16

static struct allocator {
	pthread_mutex_t lock;
	uint64_t allocated;
} __attribute__((aligned(64))) allocators[DEVICES];

static __thread unsigned thread; /* its number */

/* Tells the hook of a block that comes, or goes if `change` is negative. */
static void report_block(void *block, int64_t change)
{
	struct c10_device device = {1, (int8_t)(thread % DEVICES)};
	struct allocator *allocator = &allocators[thread % DEVICES];

	pthread_mutex_lock(&allocator->lock);
	allocator->allocated += (uint64_t)change;
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(block, change, allocator->allocated,
							      1u << 30, device);
	pthread_mutex_unlock(&allocator->lock);
}

static void *make_block(void)
{
	void *block = (void *)(((uintptr_t)thread + 1) << 32);

	report_block(block, (int64_t)bytes);
	return block;
}
#else
#define make_block()		    NULL
#define report_block(block, change) ((void)0)
#endif

static void *allocate(void)
{
	void *memory = NULL;

	if (api == API_BLOCK)
		return make_block();
	if (api == API_MALLOC)
		return malloc(bytes);
	if (api == API_ASYNC)
		return cudaMallocAsync(&memory, bytes, cudaStreamPerThread) ? NULL : memory;
	return cudaMalloc(&memory, bytes) ? NULL : memory;
}

static void release(void *memory)
{
	if (api == API_BLOCK)
		report_block(memory, -(int64_t)bytes);
	else if (api == API_MALLOC)
		free(memory);
	else if (api == API_ASYNC)
		cudaFreeAsync(memory, cudaStreamPerThread);
	else
		cudaFree(memory);
}

/* What a program does between two calls, without memory. */
static void compute(void)
{
	size_t product = 1;

	for (size_t i = 0; i < steps; i++)
		__asm__ volatile("" : "+r"(product) : "r"(product *= 3));
}

static __attribute__((noinline)) void leaf(struct work *work)
{
	void *memory = allocate();

	compute();
	if (!memory)
		work->failed = 1;
	else if (work->keep)
		*work->keep = memory;
	else
		release(memory);
	compute();
}

typedef void (*level_fn)(unsigned left, struct work *work);

static void (*const levels[8])(unsigned left, struct work *work);

/* Three bits of the path choose each function. */
static inline void next(unsigned left, struct work *work)
{
	if (left)
		levels[work->path >> 3 * (left - 1) % 60 & 7](left - 1, work);
	else
		leaf(work);
	BARRIER();
}

#define LEVEL(n)                                                                                   \
	static __attribute__((noinline)) void level##n(unsigned left, struct work *work)           \
	{                                                                                          \
		next(left, work);                                                                  \
		BARRIER();                                                                         \
	}
LEVEL(0)
LEVEL(1)
LEVEL(2)
LEVEL(3)
LEVEL(4)
LEVEL(5)
LEVEL(6)
LEVEL(7)

static void (*const levels[8])(unsigned left, struct work *work) = {level0, level1, level2, level3,
								    level4, level5, level6, level7};

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct result {
	unsigned number; /* of the thread */
	double insert;	 /* ns an allocation among `live` others, in the quietest round */
	int failed;
};

#define ROUNDS 200
#define BATCH  100 /* freed and made again in a round */

/* The one of the live allocations that a round replaces: all over the table, each once a round. */
static void **replaced(void **kept, size_t round, size_t i)
{
	return &kept[(round * BATCH + i) * 7919 % live];
}

static __attribute__((noinline)) double insert_batch(struct work *work, void **kept, size_t round)
{
	double begin = seconds(CLOCK_MONOTONIC);

	for (size_t i = 0; i < BATCH; i++) {
		work->path = i % sites;
		work->keep = replaced(kept, round, i);
		next(inner, work);
	}
	return (seconds(CLOCK_MONOTONIC) - begin) / BATCH * 1e9;
}

static void keep_live(struct work *work, struct result *result, void **kept)
{
	for (size_t i = 0; i < live; i++) {
		work->path = i % sites;
		work->keep = &kept[i];
		next(inner, work);
	}
	for (size_t round = 0; round < ROUNDS && live >= 2 * BATCH; round++) {
		double took;

		for (size_t i = 0; i < BATCH; i++)
			release(*replaced(kept, round, i));
		took = insert_batch(work, kept, round);
		if (!round || took < result->insert)
			result->insert = took;
	}
	work->keep = NULL;
}

static pthread_barrier_t ready;

static void *run(void *argument)
{
	struct result *result = argument;
	struct work work = {0};
	void **kept = calloc(live ? live : 1, sizeof(*kept));

#ifdef LOAD_BLOCKS
	thread = result->number;
#endif
	keep_live(&work, result, kept);
	for (size_t i = 0; i < warm || (i < sites && i < pairs); i++) {
		work.path = i % sites;
		next(inner, &work);
	}
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&ready);
	for (size_t i = 0; i < pairs; i++) {
		work.path = i % sites;
		next(inner, &work);
	}
	result->failed = work.failed;
	free(kept);
	return NULL;
}

static __attribute__((noinline)) void *descend(unsigned left, void *argument)
{
	void *done = left ? descend(left - 1, argument) : run(argument);

	BARRIER();
	return done;
}

static void *start(void *argument)
{
	return descend(depth > inner ? depth - inner : 0, argument);
}

static size_t number(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (*end || value < 0) {
		fprintf(stderr, "load: %s is not a number\n", text);
		exit(2);
	}
	return (size_t)value;
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {{"api", 1, 0, 'a'},
						{"depth", 1, 0, 'd'},
						{"inner", 1, 0, 'i'},
						{"sites", 1, 0, 's'},
						{"pairs", 1, 0, 'p'},
						{"live", 1, 0, 'l'},
						{"threads", 1, 0, 't'},
						{"bytes", 1, 0, 'b'},
						{"work", 1, 0, 'w'},
						{"warm", 1, 0, 'm'},
						{0}};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (option) {
		case 'a':
			api = !strcmp(optarg, "malloc")	 ? API_MALLOC
			      : !strcmp(optarg, "async") ? API_ASYNC
			      : !strcmp(optarg, "block") ? API_BLOCK
							 : API_DEVICE;
			break;
		case 'd':
			depth = (unsigned)number(optarg);
			break;
		case 'i':
			inner = (unsigned)number(optarg);
			break;
		case 's':
			sites = number(optarg);
			break;
		case 'p':
			pairs = number(optarg);
			break;
		case 'l':
			live = number(optarg);
			break;
		case 't':
			threads = (unsigned)number(optarg);
			break;
		case 'b':
			bytes = number(optarg);
			break;
		case 'w':
			steps = number(optarg);
			break;
		case 'm':
			warm = number(optarg);
			break;
		default:
			exit(2);
		}
	if (!sites || !threads || threads > MOST_THREADS) {
		fprintf(stderr, "load: at least one site, 1 to %d threads\n", MOST_THREADS);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct result results[MOST_THREADS] = {0};
	pthread_t ids[MOST_THREADS];
	double wall, cpu;
	struct rusage usage;
	int failed = 0;

	read_options(argc, argv);
	if (api != API_MALLOC)
		cudaFree(NULL);
	pthread_barrier_init(&ready, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		results[i].number = i;
		pthread_create(&ids[i], NULL, start, &results[i]);
	}
	pthread_barrier_wait(&ready);
	wall = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	pthread_barrier_wait(&ready);
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		failed |= results[i].failed;
	}
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	getrusage(RUSAGE_SELF, &usage);
	printf("{\"pair_ns\": %.1f, \"pair_cpu_ns\": %.1f, \"insert_ns\": %.1f, "
	       "\"rss_kib\": %ld, \"failed\": %d}\n",
	       wall / (double)pairs * 1e9, cpu / (double)pairs / threads * 1e9, results[0].insert,
	       usage.ru_maxrss, failed);
	return failed;
}
