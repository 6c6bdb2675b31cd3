/*
 * Walks with traces (src/stack/traces.c) against walks without, frame by frame, in a program that
 * does its worst: recursion along changing paths, functions of equal frames in each other's places,
 * alloca, frames aligned by hand, large ones, rbp as a register like any other, tail calls, calls
 * back from libc, longjmp, C++ exceptions, signals in the middle of walks, short and long threads
 * on each other's stacks, coroutines on stacks that come and go, and libraries loaded in the place
 * of others.
 *
 *     hostile CAPTURES [SEED]
 *
 * Prints what was compared. Exits with 1 if any two walks differ.
 */
#include "hostile.h"
#include "probe.h"
#include "stack/cfi.h"
#include "stack/traces.h"

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#define NOINLINE  __attribute__((noinline))
#define BARRIER() __asm__ volatile("" ::: "memory")
#define THREADS	  3

/* What all threads add up. */
static struct {
	uint64_t captures, differences, hashes, frames, stepped, full, whole;
} total;

/* A thread's dice and how far it may go. */
struct thread {
	uint64_t dice;
	int64_t left;	  /* captures until it has done its part */
	sigjmp_buf *back; /* where a longjmp may go, NULL: nowhere */
	bool may_throw, in_coroutine, done;
	ucontext_t *resume, *self;
};

static __thread struct thread me;

static unsigned dice(unsigned sides)
{
	me.dice = me.dice * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(me.dice >> 33) % sides;
}

static void note(const struct gm_walk *walk, bool differs, bool wrong_hash)
{
	__atomic_fetch_add(&total.captures, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.differences, differs || wrong_hash, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.hashes, walk[0].hashed, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.frames, walk[0].frames, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.stepped, walk[0].stepped, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.full, walk[1].stepped, __ATOMIC_RELAXED);
	__atomic_fetch_add(&total.whole, !walk[0].stepped, __ATOMIC_RELAXED);
}

static bool hashes_are_right(const struct gm_walk *walk)
{
	unsigned frames = walk->frames - walk->from;

	return !walk->hashed ||
	       (walk->hash == gm_trace_hash(walk->pc + walk->from, frames) &&
		walk->but_last == gm_trace_hash(walk->pc + walk->from, frames - 1));
}

static void show(const struct gm_walk *walk)
{
	for (unsigned i = 0; i < walk[0].frames || i < walk[1].frames; i++)
		fprintf(stderr, "%3u  %#18lx %#18lx\n", i, i < walk[0].frames ? walk[0].pc[i] : 0ul,
			i < walk[1].frames ? walk[1].pc[i] : 0ul);
}

/* Both walks begin at the same call, so that they must agree from the first frame on. */
static NOINLINE void walk_both(struct gm_walk *walk)
{
	for (volatile int i = 0; i < 2; i++)
		gm_unwinder_tables.walk(&walk[i]);
	BARRIER();
}

/* Functions that a walk is sometimes to end at; 0 for none. */
static uintptr_t stops_at[8];

NOINLINE void hostile_capture(void)
{
	static const unsigned limits[] = {9, 14, 40, 70, 70, 70, 290};
	uintptr_t pc[2][GM_TRACE_FRAMES], stop = stops_at[dice(16) % 8];
	unsigned max = limits[dice(7)], from = dice(4);
	bool differs;
	struct gm_walk walk[2];

	for (int i = 0; i < 2; i++) {
		walk[i] = (struct gm_walk){.pc = pc[i], .max = max, .from = from, .anew = i == 1};
		walk[i].stop_start = stop;
		walk[i].stop_bytes = stop ? 64 : 0;
	}
	walk_both(walk);
	differs = walk[0].frames != walk[1].frames ||
		  memcmp(pc[0], pc[1], walk[0].frames * sizeof(**pc)) != 0;
	if (differs && !__atomic_load_n(&total.differences, __ATOMIC_RELAXED))
		show(walk);
	note(walk, differs, !hashes_are_right(&walk[0]));
	me.left--;
	BARRIER();
}

/* ---- shapes of frames ---- */

/* A frame that has nothing to do with rbp, whoever calls it. */
static NOINLINE void go_on(unsigned depth)
{
	hostile_wander(depth);
	BARRIER();
}

#define TWIN(name)                                                                                 \
	static NOINLINE void name(unsigned depth)                                                  \
	{                                                                                          \
		hostile_wander(depth);                                                             \
		BARRIER();                                                                         \
		if (dice(2))                                                                       \
			go_on(depth / 2);                                                          \
		BARRIER();                                                                         \
	}
TWIN(twin_a)
TWIN(twin_b)
TWIN(twin_c)

static NOINLINE void with_alloca(unsigned depth)
{
	volatile char *room = alloca(16 + dice(3) * 64);

	room[0] = 1;
	go_on(depth);
	BARRIER();
}

static NOINLINE void aligned(unsigned depth)
{
	volatile char room[64] __attribute__((aligned(128)));

	room[0] = 1;
	hostile_wander(depth);
	room[1] = room[0];
	BARRIER();
}

static NOINLINE void aligned_with_alloca(unsigned depth)
{
	volatile char room[64] __attribute__((aligned(64)));
	volatile char *more = alloca(16 + dice(200));

	room[0] = more[0] = 1;
	hostile_wander(depth);
	more[1] = room[0];
	BARRIER();
}

static NOINLINE void large(unsigned depth)
{
	volatile char room[20000];

	room[0] = 1;
	hostile_wander(me.in_coroutine ? 0 : depth);
	room[1] = room[0];
	BARRIER();
}

static NOINLINE void recurse(unsigned frames, unsigned depth)
{
	if (frames)
		recurse(frames - 1, depth);
	else
		hostile_wander(depth);
	BARRIER();
}

/* The address sanitizer has its frames by rbp, clang's too, which says so by a feature. */
#ifdef __SANITIZE_ADDRESS__
#define KEEPS_RBP
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEPS_RBP
#endif
#endif

/* rbp holds a number that differs each time; some frame further in saves it. */
static NOINLINE void with_rbp(unsigned depth)
{
#if defined(__x86_64__) && !defined(KEEPS_RBP) && defined(__OPTIMIZE__)
	uint64_t number = dice(3);

	__asm__ volatile("mov %0, %%rbp" ::"r"(number) : "rbp");
#endif
	go_on(depth);
	BARRIER();
}

static void (*const tails[])(unsigned) = {twin_a, twin_b, with_alloca};

static NOINLINE void tail(unsigned depth)
{
	tails[depth % 3](depth);
}

static int compare(const void *a, const void *b)
{
	hostile_wander(*(const unsigned *)a);
	BARRIER();
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void through_libc(unsigned depth)
{
	unsigned numbers[2] = {depth, depth};

	qsort(numbers, 2, sizeof(*numbers), compare);
	BARRIER();
}

/* ---- ways out ---- */

static NOINLINE void jump_target(unsigned depth)
{
	sigjmp_buf here, *before = me.back;
	bool may_throw = me.may_throw;

	if (!sigsetjmp(here, 0)) {
		me.back = &here;
		me.may_throw = false; /* an exception must not pass over the buffer */
		hostile_wander(depth);
	}
	me.back = before;
	me.may_throw = may_throw;
	hostile_capture();
	BARRIER();
}

static NOINLINE void jump(unsigned depth)
{
	hostile_wander(depth);
	if (me.back && dice(2))
		siglongjmp(*me.back, 1);
	BARRIER();
}

static void wander_from_catch(void *data)
{
	hostile_wander((unsigned)(uintptr_t)data);
	BARRIER();
}

static NOINLINE void catching(unsigned depth)
{
	sigjmp_buf *before = me.back;
	bool may_throw = me.may_throw;

	me.back = NULL; /* nor a longjmp over what catches */
	me.may_throw = true;
	hostile_catch(wander_from_catch, (void *)(uintptr_t)depth);
	me.back = before;
	me.may_throw = may_throw;
	hostile_capture();
	BARRIER();
}

static NOINLINE void throwing(unsigned depth)
{
	hostile_wander(depth);
	if (me.may_throw && dice(2))
		hostile_throw();
	BARRIER();
}

/* ---- coroutines ---- */

#define PAGE 4096u

static void yield(void)
{
	if (me.in_coroutine && dice(2))
		swapcontext(me.self, me.resume);
	BARRIER();
}

static void coroutine(unsigned depth)
{
	hostile_wander(depth);
	yield();
	hostile_wander(depth / 2);
	me.done = true;
	BARRIER();
}

/*
 * On a stack mapped between two pages that cannot be read, at the same few places again and again,
 * larger or smaller than the last one that was there.
 */
static NOINLINE void on_another_stack(unsigned depth)
{
	static __thread char *place;
	size_t bytes = (16 + dice(2) * 16) * PAGE, most = 40 * PAGE;
	ucontext_t main_context, context;
	struct thread before = me;
	char *stack;

	if (me.in_coroutine)
		return;
	if (!place)
		place = mmap(NULL, most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack = mmap(place + PAGE, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	getcontext(&context);
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = bytes;
	context.uc_link = &main_context;
	makecontext(&context, (void (*)(void))(uintptr_t)coroutine, 1, depth > 4 ? 4 : depth);
	me.in_coroutine = true;
	me.done = false;
	me.back = NULL;
	me.may_throw = false;
	me.self = &context;
	me.resume = &main_context;
	do {
		swapcontext(&main_context, &context);
		hostile_capture();
	} while (!me.done);
	before.dice = me.dice;
	before.left = me.left;
	me = before;
	mmap(place + PAGE, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* ---- libraries, threads, signals ---- */

static void from_plugin(void)
{
	hostile_capture();
	/* what both walks know of code could be old: the full unwinder's word on it */
	if (!probe_unwinders_agree())
		__atomic_fetch_add(&total.differences, 1, __ATOMIC_RELAXED);
	BARRIER();
}

/*
 * Calls into one of two libraries, which mostly come to lie at the same address, so that they stand
 * at the same stack pointer there. The one with the larger frame is told what the other's return
 * address was, and has it all over its frame.
 */
static NOINLINE void call_plugin(hostile_plugin *plugin, unsigned number)
{
	static __thread uintptr_t small_returns_to;
	volatile char *room;

	if (number) {
		room = alloca(16);
		room[0] = 1;
		plugin(small_returns_to, from_plugin);
	} else {
		room = alloca(16 + HOSTILE_LARGE - HOSTILE_SMALL);
		room[0] = 1;
		small_returns_to = plugin(0, from_plugin);
	}
	BARRIER();
}

static NOINLINE void in_plugin(unsigned number)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
	const char *path = getenv(number ? "PLUGIN_B" : "PLUGIN_A");
	hostile_plugin *plugin;
	void *library;

	if (!path || me.in_coroutine)
		return;
	pthread_mutex_lock(&one_at_a_time);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	plugin = library ? (hostile_plugin *)dlsym(library, "plugin") : NULL;
	if (plugin)
		call_plugin(plugin, number);
	if (library)
		dlclose(library);
	gm_stack_modules_changed(); /* as the shim's dlclose does */
	pthread_mutex_unlock(&one_at_a_time);
	BARRIER();
}

static void start_thread(int64_t captures, uint64_t seed)
{
	uint64_t way = seed;

	me = (struct thread){.left = captures};
	while (me.left > 0) {
		/* few ways, but in any order: much comes again, not always after the same */
		way = way * 6364136223846793005ull + 1442695040888963407ull;
		me.dice = way >> 40 & 1 ? way >> 59 : way;
		recurse(dice(4) * 10, dice(12));
	}
}

struct start {
	int64_t captures;
	uint64_t seed;
};

static void *thread_main(void *data)
{
	const struct start *start = data;

	start_thread(start->captures, start->seed);
	return NULL;
}

static NOINLINE void on_a_thread(unsigned depth)
{
	struct start start = {1 + depth * 4, me.dice};
	pthread_t thread;

	if (me.in_coroutine || pthread_create(&thread, NULL, thread_main, &start))
		return;
	pthread_join(thread, NULL);
	me.left -= start.captures;
	BARRIER();
}

static void on_signal(int number)
{
	(void)number;
	hostile_capture();
	BARRIER();
}

/* Comes at any moment, in a walk too; looks no further out than to itself. */
static void on_timer(int number)
{
	uintptr_t pc[2][3];
	struct gm_walk walk[2] = {{.pc = pc[0], .max = 3}, {.pc = pc[1], .max = 3, .anew = true}};

	(void)number;
	walk_both(walk);
	if (memcmp(pc[0], pc[1], sizeof(pc[0])) != 0)
		__atomic_fetch_add(&total.differences, 1, __ATOMIC_RELAXED);
	BARRIER();
}

static void (*const shapes[])(unsigned) = {
	twin_a,	     twin_b,	   twin_c,   twin_a,	  twin_b,   twin_c,
	with_alloca, aligned,	   jump,     throwing,	  with_rbp, aligned_with_alloca,
	tail,	     through_libc, catching, jump_target,
};

#define SHAPES (sizeof(shapes) / sizeof(*shapes))

static NOINLINE void rarely(unsigned depth)
{
	switch (dice(8)) {
	case 0:
		for (unsigned i = 0, number = dice(2); i < 2; i++)
			in_plugin(number ^ (i & 1));
		break;
	case 1:
		on_a_thread(depth);
		break;
	case 2:
		raise(SIGUSR1);
		break;
	case 3:
		large(depth);
		break;
	case 4:
		on_another_stack(depth);
		break;
	default:
		recurse(me.in_coroutine ? 3 : dice(100), depth);
	}
	BARRIER();
}

NOINLINE void hostile_wander(unsigned depth)
{
	if (!depth || me.left <= 0)
		hostile_capture();
	else if (dice(400))
		shapes[dice(SHAPES)](depth - 1);
	else
		rarely(depth - 1);
	BARRIER();
}

static void every_so_often(void)
{
	const struct itimerval period = {{0, 300}, {0, 300}};

	signal(SIGUSR1, on_signal);
	signal(SIGPROF, on_timer);
	setitimer(ITIMER_PROF, &period, NULL);
}

static void print_totals(void)
{
	printf("%llu captures, %.1f frames each\n", (unsigned long long)total.captures,
	       (double)total.frames / (double)total.captures);
	printf("%.1f %% whole from a trace; %.1f %% of all frames stepped by rule\n",
	       100.0 * (double)total.whole / (double)total.captures,
	       100.0 * (double)total.stepped / (double)total.full);
	printf("%.1f %% with a hash; %llu differences\n",
	       100.0 * (double)total.hashes / (double)total.captures,
	       (unsigned long long)total.differences);
}

int main(int argc, char **argv)
{
	struct start start[THREADS];
	pthread_t thread[THREADS];
	int64_t captures = argc > 1 ? atoll(argv[1]) : 0;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	if (captures < 1) {
		fprintf(stderr, "usage: %s CAPTURES [SEED]\n", argv[0]);
		return 2;
	}
	if (!probe_start_with("unwind tables", GM_MAX_DEPTH)) {
		printf("no reader of unwind tables for this processor\n");
		return 77;
	}
	stops_at[0] = (uintptr_t)compare;
	stops_at[1] = (uintptr_t)wander_from_catch;
	stops_at[2] = (uintptr_t)go_on;
	every_so_often();
	for (unsigned i = 0; i < THREADS; i++) {
		start[i] = (struct start){captures / (THREADS + 1), seed * 1000 + i};
		pthread_create(&thread[i], NULL, thread_main, &start[i]);
	}
	start_thread(captures - captures / (THREADS + 1) * THREADS, seed);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	print_totals();
	if (total.stepped * 10 > total.full * 9) {
		printf("traces were hardly used: this run shows nothing\n");
		return 1;
	}
	return total.differences != 0;
}
