/*
 * Walks with the walk cache and stacks taken by cached results (src/stack/walk_cache.c) against
 * walks without, frame by frame, in a program that does its worst: recursion along changing paths,
 * functions of equal frames in each other's places, alloca, frames aligned by hand, large ones, rbp
 * as a register like any other, tail calls, calls back from libc, longjmp, C++ exceptions, signals
 * in the middle of walks and on stacks of their own, short and long threads on each other's stacks,
 * coroutines on stacks that come and go, libraries loaded in the place of others, Python frames
 * that change over the same words, a store that is full, and one that starts over. hostile_check.c
 * compares.
 *
 *     hostile CAPTURES [SEED]
 *
 * Prints what was compared. Exits with 1 if any two differ.
 */
#include "hostile.h"
#include "probe.h"

#include <alloca.h>
#include <dlfcn.h>
#include <link.h>
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
#define FEW	  3
#define MANY	  24 /* some then have one hash, and share their cache */
#define ROUND	  50000 /* captures until all that was recorded is forgotten */

/* A thread's dice and how far it may go. */
struct thread {
	uint64_t dice;
	int64_t left;	  /* captures until it has done its part */
	sigjmp_buf *back; /* where a longjmp may go, NULL: nowhere */
	bool may_throw, in_coroutine, in_loader, done;
	ucontext_t *resume, *self;
};

static __thread struct thread me;

unsigned hostile_dice(unsigned sides)
{
	me.dice = me.dice * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(me.dice >> 33) % sides;
}

/* Functions that a walk is sometimes to end at; 0 for none. */
static uintptr_t stops_at[8];

uintptr_t hostile_stop(void)
{
	return stops_at[hostile_dice(16) % 8];
}

/* The one that Python's interpreter is, as long as nothing is forgotten. */
static uintptr_t interpreter;

uintptr_t hostile_interpreter(void)
{
	return interpreter;
}

void hostile_took_one(void)
{
	me.left--;
}

/* ---- shapes of frames ---- */

/* Two that leave the same words behind but for the address that the wrapper returns to. */
#define SITE(name, number)                                                                         \
	static NOINLINE void name(void)                                                            \
	{                                                                                          \
		hostile_capture();                                                                 \
		__asm__ volatile("" ::"i"(number)); /* not one function for both */                \
	}
SITE(site_a, 1)
SITE(site_b, 2)

static NOINLINE void tail_site(void)
{
	hostile_capture();
}

/*
 * Whose frame is found by rbp alone, from the wrapper itself or across a frame that leaves it be.
 */
static NOINLINE void site_with_alloca(void)
{
	volatile char *room = alloca(16 + hostile_dice(3) * 64);

	room[0] = 1;
	if (hostile_dice(2))
		hostile_capture();
	else
		site_a();
	BARRIER();
}

static void (*const wrappers[])(void) = {
	hostile_capture, hostile_capture_aligned, hostile_capture_outer, site_a,
	site_b,		 tail_site,		  site_with_alloca,
};

static NOINLINE void capture(void)
{
	wrappers[hostile_dice(sizeof(wrappers) / sizeof(*wrappers))]();
	BARRIER();
}

/* A frame that has nothing to do with rbp, whoever calls it. */
static NOINLINE void go_on(unsigned depth)
{
	hostile_wander(depth);
	BARRIER();
}

#define TWIN(name, number)                                                                         \
	static NOINLINE void name(unsigned depth)                                                  \
	{                                                                                          \
		hostile_wander(depth);                                                             \
		__asm__ volatile("" ::"i"(number));                                                \
		if (hostile_dice(2))                                                               \
			go_on(depth / 2);                                                          \
		BARRIER();                                                                         \
	}
TWIN(twin_a, 1)
TWIN(twin_b, 2)
TWIN(twin_c, 3)

static NOINLINE void with_alloca(unsigned depth)
{
	volatile char *room = alloca(16 + hostile_dice(3) * 64);

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
	volatile char *more = alloca(16 + hostile_dice(200));

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

/* rbp holds a number that differs each time; some frame further in saves it. The sanitizer's frames
 * are by rbp. */
static NOINLINE void with_rbp(unsigned depth)
{
#if defined(__x86_64__) && !SANITIZED && defined(__OPTIMIZE__)
	uint64_t number = hostile_dice(3);

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
	if (me.back && hostile_dice(2))
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
	if (me.may_throw && hostile_dice(2))
		hostile_throw();
	BARRIER();
}

/* ---- coroutines ---- */

#define PAGE 4096u

static void yield(void)
{
	if (me.in_coroutine && hostile_dice(2))
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
	size_t bytes = (16 + hostile_dice(2) * 16) * PAGE, most = 40 * PAGE;
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
	hostile_check_agreement();
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
	me.in_loader = true;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	plugin = library ? (hostile_plugin *)dlsym(library, "plugin") : NULL;
	me.in_loader = false;
	hostile_in_plugin(path);
	for (int i = 0; plugin && i < 3; i++) /* by a cached result in the end */
		call_plugin(plugin, number);
	hostile_in_plugin(NULL);
	me.in_loader = true;
	if (library)
		dlclose(library);
	gm_stack_modules_changed(); /* as the shim's dlclose does */
	me.in_loader = false;
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
		recurse(hostile_dice(4) * 10, hostile_dice(12));
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

/*
 * Stands in front of glibc's for everyone here. Whoever is in it has the loader's lock, which the
 * one that has the stacks' lock may be waiting for: a handler that waits for that would wait for
 * ever. The shim's handlers do not, for there the thread is in the tracker and is let through.
 */
int dl_iterate_phdr(int (*found)(struct dl_phdr_info *, size_t, void *), void *data)
{
	static int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
	bool before = me.in_loader;
	int result;

	me.in_loader = true;
	if (!real)
		real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	result = real(found, data);
	me.in_loader = before;
	return result;
}

/* Comes at any moment; a loader that was interrupted is left alone. */
static void on_timer(int number)
{
	(void)number;
	hostile_check_in_handler(!me.in_loader);
	BARRIER();
}

/* The thread's handlers of SIGUSR2 have a stack of their own, at the same few places. */
static void on_own_stack(void)
{
	const size_t bytes = 64 * PAGE;
	stack_t stack = {.ss_size = bytes}, before;

	stack.ss_sp = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&stack, &before);
	raise(SIGUSR2);
	sigaltstack(&before, NULL);
	munmap(stack.ss_sp, bytes);
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
	switch (hostile_dice(9)) {
	case 0:
		for (unsigned i = 0, number = hostile_dice(2); i < 2; i++)
			in_plugin(number ^ (i & 1));
		break;
	case 1:
		on_a_thread(depth);
		break;
	case 2:
		raise(SIGUSR1);
		break;
	case 8:
		on_own_stack();
		break;
	case 3:
		large(depth);
		break;
	case 4:
		on_another_stack(depth);
		break;
	default:
		recurse(me.in_coroutine ? 3 : hostile_dice(100), depth);
	}
	BARRIER();
}

NOINLINE void hostile_wander(unsigned depth)
{
	if (!depth || me.left <= 0)
		capture();
	else if (hostile_dice(400))
		shapes[hostile_dice(SHAPES)](depth - 1);
	else
		rarely(depth - 1);
	BARRIER();
}

static void set_handlers(void)
{
	const struct sigaction on_own = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	signal(SIGUSR1, on_signal);
	sigaction(SIGUSR2, &on_own, NULL);
	signal(SIGPROF, on_timer);
}

static void tick(long every_us)
{
	const struct itimerval period = {{0, every_us}, {0, every_us}};

	setitimer(ITIMER_PROF, &period, NULL);
}

/* Some captures on all threads. In some rounds nothing new can be recorded from the middle on. */
static NOINLINE void run_round(int64_t captures, unsigned threads, uint64_t seed, bool fill)
{
	struct start start[MANY];
	pthread_t thread[MANY];
	int64_t own = captures - captures / (threads + 1) * threads;

	tick(300);
	for (unsigned i = 0; i < threads; i++) {
		start[i] = (struct start){captures / (threads + 1), seed * 1000 + i};
		pthread_create(&thread[i], NULL, thread_main, &start[i]);
	}
	start_thread(own / 2, seed);
	if (fill)
		hostile_fill_store();
	start_thread(own - own / 2, seed);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	tick(0);
	BARRIER();
}

/*
 * What was noted before must not be believed after: the second time, the stack that comes after the
 * first one's has the number that another had.
 */
static NOINLINE bool start_over_in_place(void)
{
	for (volatile int time = 0; time < 2; time++) {
		if (!hostile_start_over())
			return false;
		for (volatile int i = 0; i < 4; i++) {
			hostile_capture_plainly();
			if (!i && time)
				hostile_capture_plainly();
			if (i)
				hostile_capture_plainly();
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	int64_t captures = argc > 1 ? atoll(argv[1]) : 0;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	if (captures < 1) {
		fprintf(stderr, "usage: %s CAPTURES [SEED]\n", argv[0]);
		return 2;
	}
	stops_at[0] = (uintptr_t)compare;
	stops_at[1] = (uintptr_t)wander_from_catch;
	stops_at[2] = (uintptr_t)go_on;
	set_handlers();
	for (uint64_t round = 0; captures > 0; round++, captures -= ROUND) {
		if (!start_over_in_place() || !hostile_start_over()) {
			printf("no reader of unwind tables for this processor\n");
			return 77;
		}
		interpreter = stops_at[round % 5];
		/* the same seed twice: other numbers for the same stacks */
		run_round(captures < ROUND ? captures : ROUND, round % 3 == 2 ? MANY : FEW,
			  seed * 1000 + round / 2, round % 4 == 3);
	}
	return !hostile_print_totals();
}
