/*
 * Native stacks against the return addresses that the compiler knows: by each unwinder, from the
 * wrapper's caller on, with limits, from threads and signal handlers, in functions of all shapes.
 */
#include "cmocka_all.h"
#include "probe.h"
#include "sanitized.h"
#include "stack/elf_symbols.h"

#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define NOINLINE  __attribute__((noinline))
#define BARRIER() __asm__ volatile("" ::: "memory")
#define HERE()	  ((uintptr_t)__builtin_return_address(0))

/* What a stack should hold, innermost first; the first is learnt from the stack itself. */
static uintptr_t expected[600];
static unsigned expected_count;
static volatile uint32_t taken;

static uintptr_t bias(void)
{
	struct gm_object self;

	assert_true(gm_object_at((uintptr_t)bias, &self));
	return self.base;
}

/* The return address that frame `index` of a stack is, 0 unless it lies in this program. */
static uintptr_t frame_address(uint32_t stack, unsigned index)
{
	const struct gm_stack_record *record = gm_store_record(GM_TABLE_STACKS, stack);
	const struct gm_module_record *module;
	const struct gm_frame_record *frame;

	assert_non_null(record);
	assert_true(index < record->frames);
	frame = gm_store_record(
		GM_TABLE_FRAMES,
		*(uint32_t *)gm_store_record(GM_TABLE_STACK_FRAMES, record->first + index));
	assert_int_equal(frame->kind, GM_FRAME_NATIVE);
	if (frame->native.module == GM_NONE)
		return 0;
	module = gm_store_record(GM_TABLE_MODULES, frame->native.module);
	if (module->bias != bias())
		return 0;
	return frame->native.offset + module->bias;
}

static const struct gm_stack_record *record_of(uint32_t stack)
{
	const struct gm_stack_record *record = gm_store_record(GM_TABLE_STACKS, stack);

	assert_non_null(record);
	return record;
}

/* Frames 1… of the stack are the expected ones; frame 0 is in the function that took it. */
static void check_frames(uint32_t stack)
{
	assert_true(frame_address(stack, 0) != 0);
	for (unsigned i = 0; i < expected_count; i++)
		assert_int_equal(frame_address(stack, i + 1), expected[i]);
}

static NOINLINE void leaf(unsigned limit)
{
	expected[0] = HERE();
	expected_count = 1;
	taken = probe_stack(limit);
	BARRIER();
}

static NOINLINE void recurse(unsigned depth, unsigned limit)
{
	if (depth)
		recurse(depth - 1, limit);
	else
		leaf(limit);
	expected[expected_count++] = HERE();
	BARRIER();
}

/* A frame whose size the unwinder cannot know from the code alone. */
static NOINLINE void varying(unsigned bytes)
{
	volatile char *room = alloca(bytes);

	room[0] = room[bytes - 1] = 1;
	recurse(2, 0);
	expected[expected_count++] = HERE();
	BARRIER();
}

/* A frame that keeps all callee-saved registers busy and is aligned by hand. */
static NOINLINE void aligned(int a, int b, int c, int d, int e, int f)
{
	volatile char room[100] __attribute__((aligned(64)));

	room[0] = (char)(a + b);
	varying(100 + (unsigned)room[0]);
	expected[expected_count++] = HERE();
	room[1] = (char)(a + b + c + d + e + f);
	BARRIER();
}

static int compare(const void *a, const void *b)
{
	(void)a;
	(void)b;
	if (taken == GM_NONE)
		leaf(0);
	return 0;
}

static void check_shapes(void)
{
	aligned(1, 2, 3, 4, 5, 6);
	assert_true(expected_count >= 6);
	check_frames(taken);
	assert_int_equal(record_of(taken)->flags, 0);
	for (unsigned bytes = 16; bytes < 20000; bytes *= 3) {
		varying(bytes);
		check_frames(taken);
	}
}

static void test_tables(void **state)
{
	(void)state;
	if (!probe_start_with("unwind tables", 256))
		skip();
	check_shapes();
}

/*
 * Walks at random through functions of all shapes, through libc and out of signal handlers: what
 * the tables say must be what libgcc's unwinder says, frame by frame, 20000 times.
 */
static unsigned dice_state = 1;
static volatile uint64_t agreed;

static unsigned dice(unsigned sides)
{
	dice_state = dice_state * 1664525 + 1013904223;
	return (dice_state >> 16) % sides;
}

static void wander(unsigned depth);

static int wander_compare(const void *a, const void *b)
{
	wander(*(const unsigned *)a);
	BARRIER();
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void wander_aligned(unsigned depth)
{
	volatile char room[100] __attribute__((aligned(128)));
	volatile char *more = alloca(16 + dice(3000));

	room[0] = more[0] = 1;
	wander(depth);
	agreed += (uint64_t)(room[0] - more[0]);
}

static NOINLINE double wander_numbers(unsigned depth, double a, double b, double c)
{
	double d = a * b;

	wander(depth);
	return a + b + c + d;
}

static NOINLINE void wander_varying(unsigned depth)
{
	volatile char room[1 + dice(9000)];

	room[0] = 1;
	wander(depth);
	agreed += (uint64_t)(room[0] - 1);
}

static NOINLINE void wander_sort(unsigned depth)
{
	unsigned numbers[2] = {depth, depth};

	qsort(numbers, 2, sizeof(*numbers), wander_compare);
	BARRIER();
}

static void wander_signal(int number)
{
	(void)number;
	agreed += probe_unwinders_agree();
	BARRIER();
}

static NOINLINE void wander(unsigned depth)
{
	if (!depth) {
		agreed += probe_unwinders_agree();
		BARRIER();
		return;
	}
	switch (dice(6)) {
	case 0:
		wander_aligned(depth - 1);
		break;
	case 1:
		wander_numbers(depth - 1, depth, 2, 3);
		break;
	case 2:
		wander_varying(depth - 1);
		break;
	case 3:
		wander_sort(depth - 1);
		break;
	case 4:
		probe_call((void (*)(void *))(uintptr_t)wander, (void *)(uintptr_t)(depth - 1));
		break;
	default:
		wander(depth - 1);
	}
	BARRIER();
}

static void test_tables_agree_with_libgcc(void **state)
{
	const char *more = getenv("WANDER_ROUNDS"); /* for longer runs by hand */
	const unsigned rounds = more ? (unsigned)atoi(more) : 20000;
	uint64_t expected_agreements = 0;

	(void)state;
	if (!probe_start_with("libgcc", 256) || !probe_start_with("unwind tables", 256))
		skip();
	signal(SIGUSR1, wander_signal);
	for (unsigned i = 0; i < rounds; i++) {
		agreed = 0;
		wander(dice(12));
		assert_true(agreed >= 1);
		expected_agreements += agreed;
	}
	assert_int_equal(probe_disagreements(), 0);
	assert_true(expected_agreements >= rounds);
	agreed = 0;
	raise(SIGUSR1); /* through the signal's frame */
	assert_int_equal(agreed, 1);
	if (more)
		print_message("%llu walks agreed\n", (unsigned long long)expected_agreements);
}

static void test_libunwind(void **state)
{
	(void)state;
	if (!probe_start_with("libunwind", 256))
		skip();
	check_shapes();
}

static void test_libgcc(void **state)
{
	(void)state;
	if (!probe_start_with("libgcc", 256))
		skip();
	check_shapes();
}

static void test_frame_pointers(void **state)
{
	(void)state;
	assert_true(probe_start_with("frame pointers", 256));
	aligned(1, 2, 3, 4, 5, 6); /* built with frame pointers, as this program is */
	check_frames(taken);
}

static void test_through_libc(void **state)
{
	int numbers[] = {2, 1};
	uintptr_t first;
	unsigned i = 0;

	(void)state;
	if (SANITIZED)
		skip(); /* it has a qsort of its own */
	probe_start(GM_STACKS_FULL, 256);
	taken = GM_NONE;
	qsort(numbers, 2, sizeof(int), compare);
	first = frame_address(taken, 0);
	assert_true(first != 0);
	assert_int_equal(frame_address(taken, 1), expected[0]); /* in compare */
	assert_int_equal(frame_address(taken, 2), 0);		/* in qsort */
	for (i = 2; i < record_of(taken)->frames && !frame_address(taken, i); i++)
		;
	assert_true(i < record_of(taken)->frames); /* this function is below it */
}

static void test_depth(void **state)
{
	(void)state;
	for (unsigned depth = 1; depth <= 256; depth += depth < 70 ? 1 : 37) {
		probe_start(GM_STACKS_FULL, depth);
		recurse(400, 0);
		assert_int_equal(record_of(taken)->frames, depth);
		assert_int_equal(record_of(taken)->flags, GM_STACK_TRUNCATED);
		for (unsigned i = 1; i < depth; i++)
			assert_int_equal(frame_address(taken, i), expected[i - 1]);
	}
	probe_start(GM_STACKS_FULL, 5000); /* at most GM_MAX_DEPTH */
	recurse(400, 0);
	assert_int_equal(record_of(taken)->frames, GM_MAX_DEPTH);
	probe_start(GM_STACKS_FULL, 0);
	recurse(400, 0);
	assert_int_equal(record_of(taken)->frames, 1);
}

static void test_limit(void **state)
{
	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	for (unsigned limit = 1; limit < 80; limit++) {
		recurse(100, limit);
		assert_int_equal(record_of(taken)->frames, limit < 64 ? limit : 64);
		assert_int_equal(record_of(taken)->flags, GM_STACK_TRUNCATED);
	}
}

/* The exact depth of a stack is not "truncated", one less is. */
static void test_exact_depth(void **state)
{
	unsigned frames;

	(void)state;
	probe_start(GM_STACKS_FULL, 256);
	recurse(5, 0);
	frames = record_of(taken)->frames;
	assert_int_equal(record_of(taken)->flags, 0);
	probe_start(GM_STACKS_FULL, frames);
	recurse(5, 0);
	assert_int_equal(record_of(taken)->frames, frames);
	assert_int_equal(record_of(taken)->flags, 0);
	probe_start(GM_STACKS_FULL, frames - 1);
	recurse(5, 0);
	assert_int_equal(record_of(taken)->flags, GM_STACK_TRUNCATED);
}

static void test_own_frames(void **state)
{
	volatile unsigned times = 3; /* so that the loop stays one, with one call */
	uint32_t stack[3];

	(void)state;
	for (unsigned depth = 4; depth < 70; depth += 60) {
		probe_start(GM_STACKS_FULL, depth);
		for (unsigned own = 0; own < times; own++) {
			stack[own] = probe_stack_deep(0, own * 7);
			BARRIER();
		}
		/* the call lies on one line of the loop: one site */
		assert_true(frame_address(stack[0], 0) != 0);
		assert_int_equal(stack[1], stack[0]);
		assert_int_equal(stack[2], stack[0]);
	}
}

/* A return address that the unwinder does not meet (a wrapper it cannot see through) comes first.
 */
static void test_caller_not_found(void **state)
{
	struct gm_raw_stack raw, plain;

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	gm_stack_capture(&raw, (uintptr_t)check_shapes + 1, 0);
	gm_stack_capture(&plain, 0, 0);
	assert_int_equal(raw.pc[0], (uintptr_t)check_shapes + 1);
	assert_int_equal(raw.natives, plain.natives + 1);
	/* without one, the first frame outside the shim's module: here */
	assert_true(plain.pc[0] > (uintptr_t)test_caller_not_found);
	assert_true(plain.pc[0] < (uintptr_t)test_caller_not_found + 400);
	assert_memory_equal(raw.pc + 2, plain.pc + 1, (plain.natives - 1u) * sizeof(uintptr_t));
}

/* Stacks first, checks later: a loop that checks is one that the compiler may split in two. */
static void *thread_main(void *data)
{
	uint32_t *stacks = data;

	for (int i = 0; i < 500; i++)
		stacks[i] = probe_stack(0);
	return NULL;
}

static void test_threads(void **state)
{
	static uint32_t stacks[8][500];
	pthread_t thread[8];

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, thread_main, stacks[i]), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(record_of(stacks[0][0])->flags, 0);
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 500; k++)
			assert_int_equal(stacks[i][k], stacks[0][0]);
}

static pthread_barrier_t begun, limited;

static void *without_memory(void *data)
{
	uint32_t *stack = data;

	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&limited);
	errno = EXDEV;
	*stack = probe_stack(0);
	return errno == EXDEV ? data : NULL;
}

/*
 * Threads whose first stack comes where nothing more can be mapped: there is one, and errno stays.
 */
static void test_no_memory(void **state)
{
	enum { COUNT = 16 };
	struct rlimit limit, none;
	pthread_t thread[COUNT];
	uint32_t stack[COUNT];
	void *same[COUNT];

	(void)state;
	if (SANITIZED) /* it wants memory as well */
		skip();
	probe_start(GM_STACKS_FULL, 64);
	probe_stack(0);
	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	none = (struct rlimit){.rlim_cur = 4096, .rlim_max = limit.rlim_max};
	pthread_barrier_init(&begun, NULL, COUNT + 1);
	pthread_barrier_init(&limited, NULL, COUNT + 1);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, without_memory, &stack[i]), 0);
	pthread_barrier_wait(&begun);
	setrlimit(RLIMIT_AS, &none);
	pthread_barrier_wait(&limited);
	for (int i = 0; i < COUNT; i++)
		pthread_join(thread[i], &same[i]);
	setrlimit(RLIMIT_AS, &limit);
	for (int i = 0; i < COUNT; i++) {
		assert_ptr_equal(same[i], &stack[i]);
		assert_int_equal(stack[i], stack[0]);
	}
}

static void on_signal(int number)
{
	(void)number;
	taken = probe_stack(0);
	BARRIER();
}

static void test_signal_handler(void **state)
{
	unsigned frames;

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	leaf(0);
	frames = record_of(taken)->frames;
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	/* the handler, the trampoline, libc's raise, and what leaf's stack had below leaf */
	assert_true(record_of(taken)->frames > frames);
	assert_true(frame_address(taken, 0) != 0);
	assert_int_equal(frame_address(taken, record_of(taken)->frames - 1) != 0, 1); /* _start */
}

static void test_names(void **state)
{
	(void)state;
	probe_start(GM_STACKS_FULL, 64);
#if defined(__x86_64__)
	assert_string_equal(gm_stack_unwinder(), "unwind tables");
#else
	assert_true(!strcmp(gm_stack_unwinder(), "libunwind") ||
		    !strcmp(gm_stack_unwinder(), "libgcc"));
#endif
	assert_string_equal(gm_stack_python(), "");
	assert_false(probe_start_with("no such unwinder", 64));
	assert_string_equal(gm_stack_unwinder(), "none");
	leaf(0); /* then a stack is what is known without one: the caller */
	assert_int_equal(record_of(taken)->frames, 1);
	probe_start_with("libgcc", 64);
}

/* Opening libunwind must not put its _Unwind_* and backtrace in the way of the program's. */
static void test_stays_private(void **state)
{
	struct gm_object object;

	(void)state;
	if (SANITIZED)
		skip(); /* it has a backtrace of its own */
	probe_start(GM_STACKS_FULL, 64);
	if (gm_objects_symbol("_Unwind_Backtrace", &object))
		assert_null(strstr(gm_object_basename(&object), "probe"));
	assert_true(gm_objects_symbol("backtrace", &object) != NULL);
	assert_string_equal(gm_object_basename(&object), "libc.so.6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_tables_agree_with_libgcc),
		cmocka_unit_test(test_libunwind),
		cmocka_unit_test(test_libgcc),
		cmocka_unit_test(test_frame_pointers),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_through_libc),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_exact_depth),
		cmocka_unit_test(test_own_frames),
		cmocka_unit_test(test_caller_not_found),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_signal_handler),
		cmocka_unit_test(test_stays_private),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
