/*
 * What an allocation and its free take with the shim and without, in one process, where neighbours,
 * the clock rate and the layout of memory are the same for both:
 *
 *   turns async|device ROUNDS[xTHREADS[xWORK]] SHIM[,NAME=VALUE]|+NS...
 *
 * Each shim is loaded by itself, preloaded or found by nobody, with the setting that follows it,
 * and keeps a file of its own in TMPDIR or /tmp. One that finds another loaded does not record, so
 * several have a process each, one after the other. Pairs are made by the driver itself and through
 * the wrappers, some two thousand at a time, in an order drawn anew each round, 32 calls
 * deep from 16 places; with THREADS by so many threads at once, each on a stream of its own, and
 * with WORK nanoseconds of other work after each call. `+NS` stands for the driver with NS
 * nanoseconds more of such work: what any tool costs that takes so long, where threads contend for
 * the driver's own locks. Prints the medians, and the ratio to plain: the median over the rounds of
 * a round's two turns, with its 95 % interval by the order of the rounds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BARRIER()   __asm__ volatile("" ::: "memory")
#define MOST_WAYS   16
#define MOST_ROUNDS 4001
#define WARM_UP	    80000u /* pairs: the ring of events is full then */
#define PAIRS	     1920u
#define OUTER	    20u /* calls that stay */
#define INNER	    8u	/* and those that are made anew for each pair */
#define MOST_THREADS 64

struct way {
	const char *name;
	int (*alloc)(void **, size_t);
	int (*free)(void *);
	int (*alloc_async)(void **, size_t, void *);
	int (*free_async)(void *, void *);
	unsigned more_ns; /* of other work after each call */
	double ns[MOST_ROUNDS];
};

static struct way ways[MOST_WAYS];
static const struct way *way; /* in use */
static unsigned count, rounds, threads = 1, work_ns;
static __thread unsigned place;
static __thread void *stream;
static unsigned long failed; /* (atomic) */
static int async;
static void *context, *streams[MOST_THREADS];
static int (*use_context)(void *);
static pthread_barrier_t barrier;
static unsigned pairs_wanted;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline void other_work(unsigned ns)
{
	double end;

	if (ns)
		for (end = now_ns() + ns; now_ns() < end;)
			;
}

static __attribute__((noinline)) void leaf(void)
{
	void *memory = NULL;
	int wrong;

	wrong = async ? way->alloc_async(&memory, 64, stream) : way->alloc(&memory, 64);
	other_work(work_ns + way->more_ns);
	wrong |= async ? way->free_async(memory, stream) : way->free(memory);
	other_work(work_ns + way->more_ns);
	if (wrong)
		__atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
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

static void make_own_pairs(unsigned pairs)
{
	unsigned i;

	for (i = 0; i < pairs; i++) {
		place = i % 16;
		next(INNER);
	}
}

static __attribute__((noinline)) void work(unsigned left)
{
	if (left) {
		work(left - 1);
		BARRIER();
		return;
	}
	do {
		pthread_barrier_wait(&barrier);
		make_own_pairs(pairs_wanted);
		pthread_barrier_wait(&barrier);
	} while (pairs_wanted);
}

static void *thread_main(void *own_stream)
{
	stream = own_stream;
	if (use_context(context))
		__atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
	work(OUTER);
	return NULL;
}

/* The threads make so many together. */
static void make_pairs(unsigned pairs)
{
	pairs /= threads;
	if (threads == 1) {
		make_own_pairs(pairs);
		return;
	}
	pairs_wanted = pairs;
	pthread_barrier_wait(&barrier);
	make_own_pairs(pairs);
	pthread_barrier_wait(&barrier);
}

static void start_threads(int (*create)(void **, unsigned))
{
	unsigned i;
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, threads);
	for (i = 0; i < threads; i++)
		failed += create(&streams[i], 1) != 0;
	stream = streams[0];
	for (i = 1; i < threads; i++)
		failed += pthread_create(&thread, NULL, thread_main, streams[i]) != 0;
}

static void take_turn(struct way *taken, unsigned round)
{
	double before;

	way = taken;
	make_pairs(PAIRS / 4);
	before = now_ns();
	make_pairs(PAIRS);
	taken->ns[round] = (now_ns() - before) / (PAIRS / threads);
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

/*
 * How many of the lowest and of the highest values lie outside the 95 % interval of the median: the
 * normal approximation of the binomial distribution.
 */
static unsigned outside(void)
{
	double n = rounds, left = floor((n - 1.96 * sqrt(n)) / 2);

	return left > 0 ? (unsigned)left : 0;
}

static void print(void)
{
	static double ratios[MOST_ROUNDS], more[MOST_ROUNDS];
	unsigned i, round, low = outside(), high = rounds - 1 - low;

	for (i = 0; i < count; i++) {
		double *ns = ways[i].ns;

		for (round = 0; round < rounds; round++) {
			ratios[round] = ns[round] / ways[0].ns[round];
			more[round] = ns[round] - ways[0].ns[round];
		}
		qsort(ratios, rounds, sizeof(*ratios), compare);
		qsort(more, rounds, sizeof(*more), compare);
		printf("%s, %u threads, %s: +%.0f ns a pair (95 %%: %.0f to %.0f), %.3f of plain "
		       "(%.3f to %.3f)\n",
		       async ? "async" : "device", threads, ways[i].name, more[rounds / 2],
		       more[low], more[high], ratios[rounds / 2], ratios[low], ratios[high]);
	}
	for (i = 0; i < count; i++) {
		double *ns = ways[i].ns;

		qsort(ns, rounds, sizeof(*ns), compare);
		printf("%s, %u threads, %s: %.0f ns a pair (quartiles %.0f to %.0f)\n",
		       async ? "async" : "device", threads, ways[i].name, ns[rounds / 2],
		       ns[rounds / 4], ns[rounds * 3 / 4]);
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
static void add_shim(char *shim)
{
	const char *folder = getenv("TMPDIR");
	char *setting = strchr(shim, ','), out[512];
	int (*retain)(void **, int);
	void *library;

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
	failed += retain(&context, 0) || use_context(context);
	way = &ways[count - 1];
	make_own_pairs(1);
	if (setting)
		unsetenv(strndupa(setting, strcspn(setting, "=")));
}

/* Returns the shim that this process is to load, NULL without one; others have children. */
static char *choose_shim(int argc, char **argv)
{
	char *chosen = NULL;
	int i, status;
	pid_t child;

	for (i = 3; i < argc; i++) {
		if (argv[i][0] == '+')
			continue;
		child = chosen ? fork() : -1;
		if (!child)
			return chosen;
		if (chosen && (waitpid(child, &status, 0) != child || status))
			failed++;
		chosen = argv[i];
	}
	return chosen;
}

int main(int argc, char **argv)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	int (*init)(unsigned), (*create)(void **, unsigned), i;
	char *shim;

	if (argc > 3)
		sscanf(argv[2], "%ux%ux%u", &rounds, &threads, &work_ns);
	if (!rounds || rounds > MOST_ROUNDS || !threads || threads > MOST_THREADS ||
	    (strcmp(argv[1], "async") && strcmp(argv[1], "device"))) {
		fprintf(stderr,
			"usage: turns async|device ROUNDS[xTHREADS[xWORK]] "
			"SHIM[,NAME=VALUE]|+NS...   "
			"at most %d rounds and %d threads\n",
			MOST_ROUNDS, MOST_THREADS);
		return 2;
	}
	async = !strcmp(argv[1], "async");
	shim = choose_shim(argc, argv);
	add_way("plain", driver);
	*(void **)&init = find(driver, "cuInit");
	*(void **)&use_context = find(driver, "cuCtxSetCurrent");
	*(void **)&create = find(driver, "cuStreamCreate");
	failed += init(0) != 0;
	for (i = 3; i < argc; i++)
		if (argv[i][0] == '+') {
			add_way(argv[i], driver);
			ways[count - 1].more_ns = (unsigned)atoi(argv[i] + 1);
		} else if (argv[i] == shim) {
			add_shim(shim);
		}
	if (threads > 1)
		start_threads(create);
	descend(OUTER);
	print();
	fflush(stdout);
	if (failed)
		fprintf(stderr, "turns: %lu calls failed\n", failed);
	_exit(failed != 0); /* the threads wait for their next turn */
}
