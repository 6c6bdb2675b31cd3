/*
 * GPUMEMTRACE_UNWINDER=check: what is counted and said of walks that agree with libunwind's, of
 * walks that do not, and of walks that are not compared. Walks that differ are made by changing
 * right ones.
 */
#include "cmocka_all.h"
#include "probe.h"
#include "stack/unwinder_check.h"
#include "store/writer.h"

#include <stdio.h>
#include <string.h>

#define NOINLINE  __attribute__((noinline))
#define BARRIER() __asm__ volatile("" ::: "memory")
#define MOST	  64u

static struct {
	unsigned lines, differences, tables, libunwind;
	char first[200];
} logged;

static void log_line(const char *line)
{
	if (!logged.lines++)
		snprintf(logged.first, sizeof(logged.first), "%s", line);
	logged.differences += !strncmp(line, "unwinders differ", 16);
	logged.tables += !strncmp(line, "  tables    #", 13);
	logged.libunwind += !strncmp(line, "  libunwind #", 13);
}

static bool start(void)
{
	memset(&logged, 0, sizeof(logged));
	probe_start(GM_STACKS_NATIVE, 64);
	return gm_native_check(log_line);
}

/* What the latest comparison counted: compared, differing, not compared. */
static void check_counts(unsigned compared, unsigned differing, unsigned not_compared)
{
	assert_int_equal(gm_file->walks_compared, compared);
	assert_int_equal(gm_file->walks_differing, differing);
	assert_int_equal(gm_file->walks_not_compared, not_compared);
}

/*
 * A walk of this program's frames; then its part outside of this function is compared once more,
 * with the frame `at` of it changed. Returns how many frames that part has.
 */
static NOINLINE unsigned walk_with_change(unsigned at, uintptr_t pc)
{
	uintptr_t pcs[MOST];
	struct gm_walk walk = {.pc = pcs, .max = MOST};

	gm_native_walk(&walk);
	while (*walk.pc != (uintptr_t)__builtin_return_address(0)) {
		walk.pc++;
		walk.frames--;
	}
	if (at)
		walk.pc[at] = pc;
	gm_unwinder_check(&walk, 0);
	BARRIER();
	return walk.frames;
}

static NOINLINE unsigned deeper(unsigned frames, unsigned at, uintptr_t pc)
{
	unsigned walked = frames ? deeper(frames - 1, at, pc) : walk_with_change(at, pc);

	BARRIER();
	return walked;
}

static void test_agreement(void **state)
{
	(void)state;
	if (!start())
		skip();
	assert_string_equal(gm_stack_unwinder(), "unwind tables, compared with libunwind");
	assert_true(deeper(5, 0, 0) > 8);
	check_counts(2, 0, 0);
	assert_int_equal(logged.lines, 0);
}

/* Every stack that is taken is compared, also one that is known. */
static void test_each_event(void **state)
{
	(void)state;
	if (!start())
		skip();
	probe_many(100); /* each time six stacks, of which one interns twice */
	assert_int_equal(gm_file->walks_compared, 500);
	assert_int_equal(gm_file->walks_differing, 0);
}

static void test_difference(void **state)
{
	uintptr_t made_up = (uintptr_t)log_line + 1;
	unsigned frames = 0;

	(void)state;
	if (!start())
		skip();
	for (volatile int i = 0; i < 3; i++) /* the same one, from other places further out too */
		frames = deeper(5 + (unsigned)i, 2, made_up);
	check_counts(6, 3, 0);
	assert_int_equal(logged.differences, 1);
	assert_int_equal(logged.tables, frames - 2); /* of the first one, which was not so deep */
	assert_int_equal(logged.libunwind, frames - 2);
	assert_non_null(strstr(logged.first, "the first 2 are the same"));
	deeper(5, 3, made_up + 1); /* another one */
	assert_int_equal(logged.differences, 2);
}

/* However many there are, so many are printed. */
static void test_bound(void **state)
{
	(void)state;
	if (!start())
		skip();
	for (volatile unsigned i = 0; i < 3 * GM_MOST_DIFFERENCES; i++)
		deeper(5, 2, (uintptr_t)log_line + i);
	assert_int_equal(gm_file->walks_differing, 3 * GM_MOST_DIFFERENCES);
	assert_in_range(logged.differences, 1, GM_MOST_DIFFERENCES);
}

/*
 * Of a stack that the tables could not walk to its end nothing is said: libunwind is not given it.
 */
static void test_incomplete(void **state)
{
	uintptr_t pc[1] = {(uintptr_t)log_line + 1};
	struct gm_walk walk = {.pc = pc, .max = 1, .frames = 1, .incomplete = true};

	(void)state;
	if (!start())
		skip();
	gm_unwinder_check(&walk, 0);
	check_counts(0, 0, 1);
	walk.incomplete = false; /* and a frame that is not there */
	gm_unwinder_check(&walk, 0);
	check_counts(0, 0, 2);
	assert_int_equal(logged.lines, 0);
}

static void test_child(void **state)
{
	(void)state;
	if (!start())
		skip();
	gm_stack_reset();
	assert_string_equal(gm_stack_unwinder(), "unwind tables");
	deeper(1, 0, 0);
	assert_int_equal(logged.lines, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agreement),  cmocka_unit_test(test_each_event),
		cmocka_unit_test(test_difference), cmocka_unit_test(test_bound),
		cmocka_unit_test(test_incomplete), cmocka_unit_test(test_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
