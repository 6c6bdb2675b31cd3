/*
 * Stacks that were taken before: known again without another look at each frame, and not taken for
 * one another. hostile.c does the same at random; these are the cases that chance seldom makes.
 */
#include "cmocka_all.h"
#include "probe.h"
#include "stack/captured.h"
#include "stack/intern.h"

#include <alloca.h>
#include <dlfcn.h>

#define NOINLINE  __attribute__((noinline))
#define BARRIER() __asm__ volatile("" ::: "memory")

/* GPUMEMTRACE_STACK_CACHE: the same stack with and without, and walks that make no use of others.
 */
static void test_without_cache(void **state)
{
	volatile unsigned times = 5; /* so that the loop stays one, with one call */
	uintptr_t pc[GM_MAX_DEPTH];
	uint32_t stack[5];
	unsigned stepped[5];

	(void)state;
	if (!probe_start_with("unwind tables", 64))
		skip();
	for (unsigned i = 0; i < times; i++) {
		struct gm_walk walk = {.pc = pc, .max = GM_MAX_DEPTH};

		gm_stack_cache(i < 3);
		gm_native_walk(&walk);
		stepped[i] = walk.stepped;
		stack[i] = probe_stack(0);
	}
	gm_stack_cache(true);
	for (unsigned i = 1; i < 5; i++)
		assert_int_equal(stack[i], stack[0]);
	assert_int_equal(stepped[2], 0); /* what came before was as it was the time before */
	assert_true(stepped[3] > 3);
	assert_int_equal(stepped[4], stepped[3]);
}

/* How many stacks were looked at frame by frame; the library's own is called by way of this one. */
static unsigned looked_at;

uint32_t gm_captured_intern(const struct gm_raw_stack *raw, struct gm_cached_result *result)
{
	uint32_t (*library)(const struct gm_raw_stack *, struct gm_cached_result *);

	*(void **)&library = dlsym(RTLD_NEXT, "gm_captured_intern");
	looked_at++;
	return library(raw, result);
}

static NOINLINE uint32_t take(void)
{
	const struct gm_entry entry = GM_ENTRY_HERE();
	uint32_t stack = gm_stack_take(&entry, 0, NULL);

	BARRIER();
	return stack;
}

static NOINLINE uint32_t take_deep(unsigned frames)
{
	uint32_t stack = frames ? take_deep(frames - 1) : take();

	BARRIER();
	return stack;
}

/*
 * Stacks that come in turn, each beginning elsewhere and sharing its outer part with the one
 * before, are known again when they come round, whichever of the two goes deeper.
 */
static void test_known_again(void **state)
{
	static const unsigned deep[] = {0, 12, 3, 3, 40, 0, 7};
	enum { STACKS = sizeof(deep) / sizeof(*deep), ROUNDS = 6 };
	uint32_t first[STACKS] = {0};

	(void)state;
	if (!probe_start_with("unwind tables", 64))
		skip();
	for (volatile unsigned round = 0; round < ROUNDS; round++) {
		looked_at = 0;
		for (volatile unsigned i = 0; i < STACKS; i++) {
			uint32_t stack = take_deep(deep[i]);

			if (!round)
				first[i] = stack;
			assert_int_equal(stack, first[i]);
		}
	}
	assert_int_equal(first[2], first[3]);
	assert_int_not_equal(first[0], first[1]);
	assert_int_equal(looked_at, 0);
}

static NOINLINE uint32_t take_below(unsigned lines)
{
	volatile char *room = alloca(64 * lines + 16);
	uint32_t stack;

	*room = 0;
	stack = take();
	BARRIER();
	return stack;
}

/* The stack pointer comes out the same, the frame between here and there lies elsewhere. */
static NOINLINE uint32_t take_moved(bool move)
{
	volatile char *room = alloca(move ? 64 + 16 : 16);
	uint32_t stack;

	*room = 0;
	if (move) {
		stack = take_below(3);
		BARRIER();
	} else {
		stack = take_below(4);
		__asm__ volatile("nop");
	}
	return stack;
}

/*
 * What an earlier frame left where this one has nothing, its return address too, is not taken for
 * it.
 */
static void test_leftover_frame(void **state)
{
	uint32_t still = GM_NONE, moved = GM_NONE;

	(void)state;
	if (!probe_start_with("unwind tables", 64))
		skip();
	/* after some of the one, it is expected again */
	for (volatile unsigned i = 0; i < 30; i++) {
		uint32_t stack = take_moved(i % 10 == 9), *first = i % 10 == 9 ? &moved : &still;

		if (*first == GM_NONE)
			*first = stack;
		assert_int_equal(stack, *first);
	}
	assert_int_not_equal(still, moved);
}

static NOINLINE uint32_t take_brief(unsigned limit)
{
	const struct gm_entry entry = GM_ENTRY_HERE();
	uint32_t stack = gm_stack_take(&entry, limit, NULL);

	BARRIER();
	return stack;
}

enum brief { HERE, THERE, DEEPER, BRIEFS };

static NOINLINE uint32_t take_one_of(enum brief which)
{
	uint32_t stack;

	if (which == THERE) {
		stack = take_brief(2);
		BARRIER();
	} else {
		stack = take_brief(which == DEEPER ? 3 : 2);
		__asm__ volatile("nop");
	}
	return stack;
}

/*
 * Brief stacks after one and the same other, in the place where another one was expected: from
 * another call in the same frame, or with more frames asked for. When they come first and when they
 * come again.
 */
static void test_brief_in_anothers_place(void **state)
{
	static const enum brief turns[] = {DEEPER, DEEPER, HERE, THERE, THERE, HERE, DEEPER};
	enum { BEFORE = 10, ROUNDS = BEFORE + sizeof(turns) / sizeof(*turns) };
	uint32_t first[BRIEFS] = {GM_NONE, GM_NONE, GM_NONE};

	(void)state;
	if (!probe_start_with("unwind tables", 64))
		skip();
	/* the first until the same ones go before each */
	for (volatile unsigned i = 0; i < ROUNDS; i++) {
		enum brief which = i < BEFORE ? HERE : turns[i - BEFORE];
		uint32_t stack = take_one_of(which);

		if (first[which] == GM_NONE)
			first[which] = stack;
		assert_int_equal(stack, first[which]);
		take();
	}
	assert_int_not_equal(first[HERE], first[THERE]);
	assert_int_not_equal(first[HERE], first[DEEPER]);
	assert_int_not_equal(first[THERE], first[DEEPER]);
}

static NOINLINE uint32_t take_sampled(uint64_t bytes)
{
	const struct gm_entry entry = GM_ENTRY_HERE();
	struct gm_stack_taking taking;
	uint32_t stack;

	gm_stack_begin(&taking, &entry, gm_stack_hint(bytes));
	stack = gm_stack_end(&taking, NULL);
	BARRIER();
	return stack;
}

enum { SAMPLES = 3 };

static NOINLINE uint32_t take_sample_of(unsigned which)
{
	uint32_t stack;

	if (which == 0) {
		stack = take_sampled(512);
		BARRIER();
	} else if (which == 1) {
		stack = take_sampled(1024);
		__asm__ volatile("nop");
	} else {
		stack = take_sampled(1536);
		__asm__ volatile("nop; nop");
	}
	return stack;
}

/* Sampled blocks come in any order, with sizes of their own: their stacks are known again. */
static void test_samples_in_any_order(void **state)
{
	enum { MET = 50, ROUNDS = 250 }; /* in the first each came several times */
	uint32_t first[SAMPLES] = {GM_NONE, GM_NONE, GM_NONE}, order = 1;

	(void)state;
	if (!probe_start_with("unwind tables", 64))
		skip();
	for (volatile unsigned i = 0; i < ROUNDS; i++) {
		unsigned which = (order = order * 1103515245u + 12345u) >> 16;
		uint32_t stack = take_sample_of(which %= SAMPLES);

		if (first[which] == GM_NONE)
			first[which] = stack;
		assert_int_equal(stack, first[which]);
		if (i < MET)
			looked_at = 0;
	}
	assert_int_equal(looked_at, 0);
	assert_int_not_equal(first[0], first[1]);
	assert_int_not_equal(first[1], first[2]);
	assert_int_not_equal(first[0], first[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_cache),
		cmocka_unit_test(test_known_again),
		cmocka_unit_test(test_leftover_frame),
		cmocka_unit_test(test_brief_in_anothers_place),
		cmocka_unit_test(test_samples_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
