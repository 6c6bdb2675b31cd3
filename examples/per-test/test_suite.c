/*
 * A cmocka suite in which every test begins with a mark of its own name, so that one process and
 * one file tell each test's leak:
 *
 *     gpumem-report run --check "leaks=off --per-mark --warmup 1" -- ./test_suite
 *
 * fails for the tests that leave memory behind and names the line. No library to link.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpumemtrace.h"

int cudaMalloc(void **memory, size_t bytes);
int cudaFree(void *memory);

/* cmocka hands the setup the name that TEST gives as the test's first state. */
static int begin(void **state)
{
	gpumemtrace_mark(*state);
	return 0;
}

#define TEST(function) cmocka_unit_test_prestate_setup_teardown(function, begin, NULL, #function)

/* The last mark: what a teardown of the whole group does is no test's. */
static int end_of_tests(void **state)
{
	(void)state;
	gpumemtrace_mark("end of tests");
	return 0;
}

static void *cache; /* made by the first test that needs it, kept on purpose: the warm-up */

static void fills_the_cache(void **state)
{
	(void)state;
	assert_int_equal(cudaMalloc(&cache, 1 << 20), 0);
}

static void cleans_up(void **state)
{
	void *block;

	(void)state;
	assert_int_equal(cudaMalloc(&block, 4096), 0);
	assert_int_equal(cudaFree(block), 0);
}

static void forgets_a_block(void **state)
{
	void *block;

	(void)state;
	assert_int_equal(cudaMalloc(&block, 12288), 0);
}

static void cleans_up_too(void **state)
{
	cleans_up(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fills_the_cache),
		TEST(cleans_up),
		TEST(forgets_a_block),
		TEST(cleans_up_too),
	};

	return cmocka_run_group_tests(tests, NULL, end_of_tests);
}
