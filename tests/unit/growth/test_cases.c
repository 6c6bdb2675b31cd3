/*
 * The growth test on behaviours with a name: what people call a leak must be `grow`, what they do
 * not must not, in time windows and between marks.
 */
#include "cmocka_all.h"
#include "judged.h"
#include "../../hygiene/effort.h"
#include "report/doc/enum_names.h"

#include <string.h>

#define MIB  (1ull << 20)
#define STEP 20000ull /* ns */

/* What a step works with, freed at its end. */
static void work(unsigned site, uint64_t bytes)
{
	uint32_t a = trace_alloc(site, bytes), b = trace_alloc(site, bytes / 2);

	trace_wait(STEP / 2);
	trace_free(a);
	trace_free(b);
	trace_wait(STEP / 2);
}

static void is(unsigned site, enum gm_verdict wanted)
{
	enum gm_verdict found = trace_verdict(site);

	if (found != wanted)
		fail_msg("%s, not %s: %s", gm_verdict_name(found), gm_verdict_name(wanted),
			 trace_why());
}

/* Steps of a loop; `leak_every` 0: none. Marks after each step if `marks`. */
static void loop(unsigned steps, unsigned leak_every, uint64_t leak_bytes, bool marks)
{
	trace_begin(1);
	trace_wait(3000000); /* the context's creation */
	for (unsigned i = 0; i < steps; i++) {
		work(0, 64 * MIB);
		if (leak_every && i % leak_every == leak_every - 1)
			trace_alloc(0, leak_bytes);
		if (marks)
			trace_mark();
	}
}

static void one_block_per_step(void **state)
{
	(void)state;
	for (int marks = 0; marks < 2; marks++)
		for (unsigned steps = 20; steps <= 20000; steps *= 10) {
			loop(steps, 1, 512, marks);
			is(0, GM_GROW);
		}
}

static void every_tenth_step(void **state)
{
	(void)state;
	for (int marks = 0; marks < 2; marks++)
		for (unsigned steps = 200; steps <= 20000; steps *= 10) {
			loop(steps, 10, 4096, marks);
			is(0, GM_GROW);
		}
}

static void no_leak(void **state)
{
	(void)state;
	for (int marks = 0; marks < 2; marks++)
		for (unsigned steps = 1; steps <= 10000; steps *= 10) {
			loop(steps, 0, 0, marks);
			is(0, GM_RELEASED);
			trace_alloc(0, MIB); /* one is held at the end */
			is(0, GM_HELD);
		}
}

/* A tooth of a thousand blocks and a gigabyte, over which a kilobyte is left. */
static void hidden_in_a_sawtooth(void **state)
{
	uint32_t tooth[1000];

	(void)state;
	for (int leak = 0; leak < 2; leak++) {
		trace_begin(2);
		trace_alloc(0, MIB);
		for (unsigned i = 0; i < 300; i++) {
			unsigned height = 100 + (unsigned)trace_random(900);

			for (unsigned k = 0; k < height; k++) {
				tooth[k] = trace_alloc(0, MIB + trace_random(MIB));
				trace_wait(1000);
			}
			for (unsigned k = 0; k < height; k++)
				trace_free(tooth[k]);
			if (leak)
				trace_alloc(0, 1024);
		}
		is(0, leak ? GM_GROW : GM_HELD);
	}
}

/* Fills over the first part of the run and then serves from it, or replaces its oldest. */
static void cache(unsigned fill, unsigned steps, bool replaces, bool marks)
{
	uint32_t kept[5000];

	trace_begin(3);
	for (unsigned i = 0; i < steps; i++) {
		work(0, 8 * MIB);
		work(1, MIB);
		if (i >= fill && replaces)
			trace_free(kept[i % fill]);
		if (i < fill || replaces)
			kept[i % fill] = trace_alloc(0, MIB);
		if (marks && i % 20 == 19)
			trace_mark();
	}
}

static void cache_that_rises_and_stays(void **state)
{
	(void)state;
	for (int marks = 0; marks < 2; marks++) {
		cache(100, 1000, false, marks);
		is(0, GM_HELD);
		cache(500, 1000, false, marks);
		is(0, GM_HELD);
		cache(2500, 5000, false, marks);
		is(0, GM_HELD);
		cache(100, 5000, true, marks);
		is(0, GM_HELD);
		cache(1000, 1000, false, marks); /* still rising at the end */
		is(0, GM_GROW);
	}
}

/* Optimizer state at the first step, a workspace at a third, a plan at two thirds. */
static void one_time_rises(void **state)
{
	(void)state;
	for (int marks = 0; marks < 2; marks++) {
		trace_begin(4);
		for (unsigned i = 0; i < 900; i++) {
			work(0, 32 * MIB);
			if (i == 0 || i == 300 || i == 600)
				for (unsigned k = 0; k < 20; k++)
					trace_alloc(0, 4 * MIB);
			if (marks && i % 10 == 0)
				trace_mark();
		}
		is(0, GM_HELD);
	}
}

static void many_sites_each_a_little(void **state)
{
	(void)state;
	trace_begin(5);
	for (unsigned i = 0; i < 400; i++)
		for (unsigned site = 0; site < 50; site++) {
			work(site, MIB);
			if (i % 4 == site % 4)
				trace_alloc(site, 512);
		}
	for (unsigned site = 0; site < 50; site++)
		is(site, GM_GROW);
}

static void shrinking(void **state)
{
	uint32_t kept[500];

	(void)state;
	for (int marks = 0; marks < 2; marks++) {
		trace_begin(6);
		for (unsigned i = 0; i < 500; i++)
			kept[i] = trace_alloc(0, MIB);
		for (unsigned i = 0; i < 450; i++) {
			work(0, 16 * MIB);
			trace_free(kept[i]);
			if (marks && i % 20 == 0)
				trace_mark();
		}
		is(0, GM_HELD);
	}
}

/* One buffer that is replaced by a longer one at each step leaves no block behind. */
static void buffer_that_gets_longer(void **state)
{
	(void)state;
	for (int marks = 0; marks < 2; marks++) {
		uint32_t old;

		trace_begin(7);
		old = trace_alloc(0, 4096);
		for (unsigned i = 1; i < 400; i++) {
			uint32_t longer = trace_alloc(0, 4096 * (i + 1));

			trace_free(old);
			old = longer;
			work(1, MIB);
			if (marks)
				trace_mark();
		}
		is(0, GM_GROW);
	}
}

static void too_few_windows_are_no_verdict(void **state)
{
	(void)state;
	trace_begin(8);
	for (unsigned i = 0; i < 3; i++)
		trace_alloc(0, MIB);
	is(0, GM_HELD);
	assert_string_equal(trace_why(), "the run was too short to judge growth");
	loop(4, 1, 512, true); /* the first two are warm-up */
	is(0, GM_HELD);
	assert_string_equal(trace_why(),
			    "4 marks are too few to judge growth by: make none, or 6 and more");
	loop(9, 1, 512, true);
	is(0, GM_GROW);
}

/*
 * Blocks of one site that are never freed, and nothing else comes or goes: a set-up as far as
 * anyone can tell, however many they are and however long it takes. With work in between they are a
 * leak.
 */
static void never_freed(void **state)
{
	(void)state;
	for (unsigned count = 10; count <= 1000; count *= 10) {
		for (int works = 0; works < 2; works++) {
			trace_begin(9);
			trace_wait(5000000);
			for (unsigned i = 0; i < count; i++) {
				trace_alloc(0, 256);
				trace_wait(200 + trace_random(trace_one_in(50) ? 2000000 : 500));
				if (works)
					work(1, MIB);
			}
			is(0, works ? GM_GROW : GM_HELD);
			trace_wait(4000000); /* an exit that takes its time */
			is(0, works ? GM_GROW : GM_HELD);
		}
	}
}

static void fixed_set_then_idle(void **state)
{
	(void)state;
	for (unsigned count = 10; count <= 1000; count *= 10) {
		trace_begin(10);
		for (unsigned i = 0; i < count; i++) {
			trace_alloc(0, 256);
			trace_wait(500);
		}
		trace_wait(2000000000);
		is(0, GM_HELD);
	}
}

/* A server: weights for a minute, then two minutes of graphs that allocate nothing. */
static void weights_then_service_without_memory(void **state)
{
	(void)state;
	trace_begin(14);
	for (unsigned i = 0; i < 400; i++) {
		trace_alloc(0, MIB);
		trace_wait(150000000);
	}
	trace_wait(120000000000);
	is(0, GM_HELD);
}

/* A server that loses a block with each request, drains for a while and shuts down. */
static void leaking_requests_then_shutdown(void **state)
{
	(void)state;
	for (int draining = 0; draining < 2; draining++) {
		trace_begin(15);
		for (unsigned i = 0; i < 3000; i++) {
			work(1, MIB);
			trace_alloc(0, 4096);
			trace_wait(20000000);
		}
		trace_wait(draining ? 30000000000 : 1000000000);
		is(0, GM_GROW);
	}
}

/* A cache that filled in the first quarter of a minute; then only hits, and at last nothing at all.
 */
static void cache_that_filled_then_idle(void **state)
{
	(void)state;
	for (int idle = 0; idle < 2; idle++) {
		trace_begin(16);
		for (unsigned i = 0; i < 3000; i++) {
			work(1, MIB);
			if (i < 750)
				trace_alloc(0, 4096);
			trace_wait(20000000);
		}
		trace_wait(idle ? 60000000000 : 0);
		is(0, GM_HELD);
	}
}

static void fixed_set_then_work_elsewhere(void **state)
{
	(void)state;
	for (int marks = 0; marks < 2; marks++)
		for (unsigned count = 10; count <= 1000; count *= 10) {
			trace_begin(11);
			for (unsigned i = 0; i < count; i++)
				trace_alloc(0, 256);
			for (unsigned i = 0; i < 3 * count; i++) {
				work(1, MIB);
				if (marks && i % 4 == 0)
					trace_mark();
			}
			is(0, GM_HELD);
		}
}

/* What grew in the warm-up alone is held; the tests of a suite, each between two marks. */
static void warm_up_and_tests(void **state)
{
	(void)state;
	for (unsigned tests = 10; tests <= 160; tests *= 2)
		for (unsigned bad = 0; bad < 2; bad++) {
			trace_begin(12);
			for (unsigned i = 0; i < tests; i++) {
				trace_mark();
				work(0, 4 * MIB);
				if (bad || i < 2)
					trace_alloc(0, MIB);
			}
			trace_mark();
			is(0, bad ? GM_GROW : GM_HELD);
		}
}

/* The machine's pauses do not change a verdict. */
static void pauses_do_not_matter(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++)
		for (int leak = 0; leak < 2; leak++) {
			trace_begin(seed);
			trace_alloc(0, MIB);
			trace_wait(trace_random(20000000));
			for (unsigned i = 0; i < 40; i++) {
				uint32_t block = trace_alloc(0, MIB);

				trace_wait(1000 + trace_random(trace_one_in(10) ? 30000000 : 4000));
				trace_free(block);
				if (leak)
					trace_alloc(0, 512);
			}
			is(0, leak ? GM_GROW : GM_HELD);
		}
}

static void hundred_million_events(void **state)
{
	(void)state;
	for (int leak = 0; leak < 2; leak++) {
		trace_begin(13);
		trace_alloc(0, MIB);
		for (unsigned i = 0; i < 50000000 / test_thinned(); i++) {
			uint32_t block = trace_alloc(0, 512 + i % 4096);

			trace_wait(3000);
			trace_free(block);
			if (leak && i % 1000 == 0)
				trace_alloc(0, 512);
		}
		is(0, leak ? GM_GROW : GM_HELD);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_block_per_step),
		cmocka_unit_test(every_tenth_step),
		cmocka_unit_test(no_leak),
		cmocka_unit_test(hidden_in_a_sawtooth),
		cmocka_unit_test(cache_that_rises_and_stays),
		cmocka_unit_test(one_time_rises),
		cmocka_unit_test(many_sites_each_a_little),
		cmocka_unit_test(shrinking),
		cmocka_unit_test(buffer_that_gets_longer),
		cmocka_unit_test(too_few_windows_are_no_verdict),
		cmocka_unit_test(never_freed),
		cmocka_unit_test(fixed_set_then_idle),
		cmocka_unit_test(weights_then_service_without_memory),
		cmocka_unit_test(leaking_requests_then_shutdown),
		cmocka_unit_test(cache_that_filled_then_idle),
		cmocka_unit_test(fixed_set_then_work_elsewhere),
		cmocka_unit_test(warm_up_and_tests),
		cmocka_unit_test(pauses_do_not_matter),
		cmocka_unit_test(hundred_million_events),
	};

	if (argc > 1) /* these only */
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
