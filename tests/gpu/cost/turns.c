/*
 * What an allocation and its free take with each of several builds of the shim, in one process,
 * where neighbours, the clock rate and the layout of memory are the same for all:
 *
 *   turns async|device ROUNDS SHIM[,NAME=VALUE]...
 *
 * Each shim is loaded by itself, preloaded or found by nobody, with the setting that follows it,
 * and keeps a file of its own in TMPDIR or /tmp. Pairs are made by the driver itself and through
 * each one's wrappers, a thousand at a time, in an order drawn anew each round, 32 calls deep from
 * 16 places. Prints the medians.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BARRIER()   __asm__ volatile("" ::: "memory")
#define MOST_WAYS   16
#define MOST_ROUNDS 4001
#define WARM_UP	    80000u /* pairs: the ring of events is full then */
#define PAIRS	    1000u
#define OUTER	    20u /* calls that stay */
#define INNER	    8u	/* and those that are made anew for each pair */

struct way {
	const char *name;
	int (*alloc)(void **, size_t);
	int (*free)(void *);
	int (*alloc_async)(void **, size_t, void *);
	int (*free_async)(void *, void *);
	double ns[MOST_ROUNDS];
};

static struct way ways[MOST_WAYS];
static const struct way *way; /* in use */
static unsigned count, rounds, place;
static unsigned long failed;
static int async;

static __attribute__((noinline)) void leaf(void)
{
	void *memory = NULL;

	failed += (async ? way->alloc_async(&memory, 64, NULL) : way->alloc(&memory, 64)) != 0;
	BARRIER();
	failed += (async ? way->free_async(memory, NULL) : way->free(memory)) != 0;
	BARRIER();
}

static void (*const levels[2])(unsigned left);

static inline void next(unsigned left)
{
	if (left)
		levels[place >> (left - 1) % 4 & 1](left - 1);
	else
		leaf();
	BARRIER();
}

static __attribute__((noinline)) void level0(unsigned left)
{
	next(left);
	BARRIER();
}

static __attribute__((noinline)) void level1(unsigned left)
{
	next(left);
	BARRIER();
}

static void (*const levels[2])(unsigned left) = {level0, level1};

static void make_pairs(unsigned pairs)
{
	unsigned i;

	for (i = 0; i < pairs; i++) {
		place = i % 16;
		next(INNER);
	}
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void take_turn(struct way *taken, unsigned round)
{
	double before;

	way = taken;
	make_pairs(PAIRS / 4);
	before = now_ns();
	make_pairs(PAIRS);
	taken->ns[round] = (now_ns() - before) / PAIRS;
}

static void take_turns(void)
{
	unsigned order[MOST_WAYS], round, i, other, kept;

	for (i = 0; i < count; i++) {
		order[i] = i;
		way = &ways[i];
		make_pairs(WARM_UP);
	}
	for (round = 0; round < rounds; round++)
		for (i = count; i; i--) {
			other = (unsigned)rand() % i;
			kept = order[other];
			order[other] = order[i - 1];
			order[i - 1] = kept;
			take_turn(&ways[kept], round);
		}
}

static __attribute__((noinline)) void descend(unsigned left)
{
	if (left)
		descend(left - 1);
	else
		take_turns();
	BARRIER();
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print(void)
{
	double plain = 0;
	unsigned i;

	for (i = 0; i < count; i++) {
		double *ns = ways[i].ns;

		qsort(ns, rounds, sizeof(*ns), compare);
		plain = i ? plain : ns[rounds / 2];
		printf("%s, %s: %.0f ns a pair (quartiles %.0f to %.0f), +%.0f ns, %.3f of plain\n",
		       async ? "async" : "device", ways[i].name, ns[rounds / 2], ns[rounds / 4],
		       ns[rounds * 3 / 4], ns[rounds / 2] - plain, ns[rounds / 2] / plain);
	}
}

static void *find(void *library, const char *name)
{
	void *found = library ? dlsym(library, name) : NULL;

	if (found)
		return found;
	fprintf(stderr, "turns: %s\n", dlerror());
	exit(2);
}

/* The first is the driver itself. */
static void add_way(const char *name, void *library)
{
	struct way *added = &ways[count];

	if (count++ == MOST_WAYS) {
		fprintf(stderr, "turns: at most %d shims\n", MOST_WAYS - 1);
		exit(2);
	}
	*(void **)&added->alloc = find(library, "cuMemAlloc_v2");
	*(void **)&added->free = find(library, "cuMemFree_v2");
	*(void **)&added->alloc_async = find(library, "cuMemAllocAsync");
	*(void **)&added->free_async = find(library, "cuMemFreeAsync");
	added->name = name;
}

/* Its settings are read when it is first called, which is here. */
static void add_shim(char *shim, void *driver)
{
	const char *folder = getenv("TMPDIR");
	char *setting = strchr(shim, ','), out[512];
	int (*retain)(void **, int), (*use)(void *);
	void *context = NULL, *library;

	if (setting) {
		*setting++ = 0;
		putenv(strdup(setting));
	}
	snprintf(out, sizeof(out), "%s/turns.%d.%u.gmt", folder ? folder : "/tmp", (int)getpid(),
		 count);
	setenv("GPUMEMTRACE_OUT", out, 1);
	setenv("GPUMEMTRACE_QUIET", "1", 1);
	library = dlopen(shim, RTLD_NOW | RTLD_LOCAL);
	add_way(setting ? setting : shim, library);
	*(void **)&retain = find(library, "cuDevicePrimaryCtxRetain");
	*(void **)&use = find(driver, "cuCtxSetCurrent");
	failed += retain(&context, 0) || use(context);
	way = &ways[count - 1];
	make_pairs(1);
	if (setting)
		unsetenv(strndupa(setting, strcspn(setting, "=")));
}

int main(int argc, char **argv)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	int (*init)(unsigned), i;

	rounds = argc > 3 ? (unsigned)atoi(argv[2]) : 0;
	if (!rounds || rounds > MOST_ROUNDS ||
	    (strcmp(argv[1], "async") && strcmp(argv[1], "device"))) {
		fprintf(stderr,
			"usage: turns async|device ROUNDS SHIM[,NAME=VALUE]...   at most %d "
			"rounds\n",
			MOST_ROUNDS);
		return 2;
	}
	async = !strcmp(argv[1], "async");
	add_way("plain", driver);
	*(void **)&init = find(driver, "cuInit");
	failed += init(0) != 0;
	for (i = 3; i < argc; i++)
		add_shim(argv[i], driver);
	descend(OUTER);
	print();
	if (failed)
		fprintf(stderr, "turns: %lu calls failed\n", failed);
	return failed != 0;
}
