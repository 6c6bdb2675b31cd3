/*
 * Verdicts of sites, leaks at exit, holes, out-of-memory verdicts and gates, on files made by hand.
 */
#include "file.h"
#include "report/gate/gates.h"
#include "report/judge/judge.h"
#include "report/doc/options.h"
#include "report/judge/findings.h"
#include "report/open/open.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static const char *const path = test_path;

static const struct gm_options options = {
	.device = -1,
	.kind = -1,
	.level = -1,
	.warmup = 2,
	.top = 20,
};

static struct gm_doc *judge(struct test_file *file)
{
	char error[512];
	struct gm_doc *doc;

	assert_int_equal(test_write(file, path), 0);
	doc = gm_doc_open(path, &options, error, sizeof(error));
	assert_non_null(doc);
	test_end(file);
	return doc;
}

static uint32_t stack_at(struct test_file *file, const char *frame)
{
	const char *const frames[] = {frame, "main train.py 99", NULL};

	return test_stack(file, frames);
}

static const struct gm_finding *finding(const struct gm_doc *doc, const char *id)
{
	for (unsigned i = 0; i < doc->findings_count; i++)
		if (strcmp(doc->findings[i].id, id) == 0)
			return &doc->findings[i];
	return NULL;
}

/* Two sites take turns; one frees, one never does. Time stands still: order alone tells. */
static void never_freed_in_a_loop(void **state)
{
	struct test_file file;
	uint32_t leak, init, work;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	init = test_add_site(&file, stack_at(&file, "init a.py 1"), 0, GM_KIND_DEVICE, 0, 20, 0,
			     MIB);
	leak = test_add_site(&file, stack_at(&file, "leak a.py 2"), 0, GM_KIND_DEVICE, 0, 0, 0, 1);
	work = test_add_site(&file, stack_at(&file, "work a.py 3"), 0, GM_KIND_DEVICE, 0, 0, 500,
			     MIB);
	for (unsigned i = 0; i < 50; i++) {
		test_block(&file, leak, GM_SPACE_POINTER, 0x7000000000 + i * 4096, 1000);
		file.header.serial += 10;
	}
	test_site(&file, leak)->live_bytes = test_site(&file, leak)->allocated_bytes = 50000;
	test_site(&file, leak)->live_count = test_site(&file, leak)->allocations = 50;
	test_sum(&file);
	doc = judge(&file);
	assert_int_equal(doc->sites[init].verdict, GM_HELD);
	assert_int_equal(doc->sites[leak].verdict, GM_GROW);
	assert_int_equal(doc->sites[work].verdict, GM_RELEASED);
	assert_int_equal(doc->exit_bytes, 20 * MIB + 50000);
	assert_int_equal(doc->exit_count, 70);
	assert_non_null(finding(doc, "leak.grow"));
	assert_int_equal(finding(doc, "leak.grow")->site, leak);
	assert_non_null(finding(doc, "leak.exit"));
	gm_doc_close(doc);
}

static void few_allocations_are_no_growth(void **state)
{
	struct test_file file;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	test_add_site(&file, stack_at(&file, "three a.py 1"), 0, GM_KIND_DEVICE, 0, 3, 0, MIB);
	test_sum(&file);
	doc = judge(&file);
	assert_int_equal(doc->sites[0].verdict, GM_HELD);
	assert_string_equal(doc->sites[0].why, "the run was too short to judge growth");
	gm_doc_close(doc);
}

/* All allocated at the start of a run that went on working: loading, not leaking. */
static void stopped_long_before_the_end(void **state)
{
	struct test_file file;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	test_add_site(&file, stack_at(&file, "load a.py 1"), 0, GM_KIND_DEVICE, 0, 40, 0, MIB);
	file.header.serial += 400;
	test_sum(&file);
	doc = judge(&file);
	assert_int_equal(doc->sites[0].verdict, GM_HELD);
	gm_doc_close(doc);
}

/* A leaking loop of 0.6 s whose framework takes a second to go: the teardown is no pause. */
static void long_teardown(void **state)
{
	struct test_file file;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	test_add_site(&file, stack_at(&file, "keep a.py 1"), 0, GM_KIND_DEVICE, 0, 40, 0, MIB);
	test_site(&file, 0)->last_ns = 600000000;
	file.header.last_event_ns = file.header.ended_ns = 1800000000;
	test_sum(&file);
	doc = judge(&file);
	assert_int_equal(doc->sites[0].verdict, GM_GROW);
	gm_doc_close(doc);
}

/* Of ten blocks one is kept, evenly over the run; a ring of the last hundred is none. */
static void kept_and_bounded(void **state)
{
	struct test_file file;
	uint32_t keeps, ring;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	keeps = test_add_site(&file, stack_at(&file, "keeps a.py 1"), 0, GM_KIND_DEVICE, 0, 0, 0,
			      1);
	ring = test_add_site(&file, stack_at(&file, "ring a.py 2"), 0, GM_KIND_DEVICE, 0, 0, 0, 1);
	for (unsigned i = 0; i < 100; i++) {
		test_block(&file, keeps, GM_SPACE_POINTER, 0x7000000000 + i * 4096, 1000);
		file.header.serial += 19;
	}
	for (unsigned i = 0; i < 100; i++)
		test_block(&file, ring, GM_SPACE_POINTER, 0x8000000000 + i * 4096, 1000);
	for (unsigned i = 0; i < 2; i++) {
		struct gm_site_record *site = test_site(&file, i);

		site->live_bytes = 100000;
		site->live_count = 100;
		site->allocated_bytes = 1000000;
		site->freed_bytes = 900000;
		site->allocations = 1000;
		site->frees = 900;
	}
	file.header.window_current = file.header.window_filled = 4; /* it allocates after frees */
	test_sum(&file);
	doc = judge(&file);
	assert_int_equal(doc->sites[keeps].verdict, GM_GROW);
	assert_int_equal(doc->sites[ring].verdict, GM_HELD);
	gm_doc_close(doc);
}

/* Windows between marks decide where there are enough of them. */
static void windows_of_marks(void **state)
{
	struct test_file file;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	for (unsigned s = 0; s < 2; s++) {
		struct gm_site_record *site;

		test_add_site(&file, stack_at(&file, s ? "flat a.py 1" : "rise a.py 2"), 0,
			      GM_KIND_DEVICE, 0, 10, 90, 1000);
		site = test_site(&file, s);
		site->window_current = 9;
		site->window_resets = 1;
		for (unsigned w = 0; w < 10; w++) {
			uint64_t floor = s ? 5000 : 1000 * (w + 1);

			site->windows[w] = (struct gm_window){floor, floor + 30000, floor};
		}
	}
	file.header.window_current = file.header.window_filled = 9;
	file.header.window_marks = file.header.window_resets = 1;
	test_sum(&file);
	doc = judge(&file);
	assert_int_equal(doc->sites[0].verdict, GM_GROW);
	assert_int_equal(doc->sites[1].verdict, GM_HELD);
	gm_doc_close(doc);
}

/* With a mark of the program only what came after it is a leak at exit. */
static void marks_move_the_exit_baseline(void **state)
{
	struct test_file file;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	test_add_site(&file, stack_at(&file, "a a.py 1"), 0, GM_KIND_DEVICE, 0, 5, 0, 1000);
	test_add_site(&file, stack_at(&file, "r a.py 2"), 0, GM_KIND_REGISTERED, -1, 2, 0, 1000);
	test_add_site(&file, stack_at(&file, "p a.py 3"), 0, GM_KIND_PINNED, -1, 1, 0, 700);
	test_add_site(&file, stack_at(&file, "t a.py 4"), GM_LEVEL_CUSTOM, GM_KIND_DEVICE, 0, 1, 0,
		      700);
	test_site(&file, 0)->stray_bytes = 3000;
	test_site(&file, 0)->stray_count = 3;
	file.header.first_mark_serial = 4;
	test_sum(&file);
	doc = judge(&file);
	assert_int_equal(doc->exit_bytes, 2700);
	assert_int_equal(doc->exit_count, 3);
	gm_doc_close(doc);
}

/* Older epoch than the level's: what is live was live at the peak. */
static void peak_epoch(void **state)
{
	struct test_file file;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	test_add_site(&file, stack_at(&file, "a a.py 1"), 0, GM_KIND_DEVICE, 0, 5, 0, 1000);
	test_add_site(&file, stack_at(&file, "b a.py 1"), 0, GM_KIND_DEVICE, 0, 5, 0, 1000);
	test_site(&file, 0)->bytes_at_peak = test_site(&file, 1)->bytes_at_peak = 77;
	test_site(&file, 0)->epoch = 0;
	test_sum(&file);
	doc = judge(&file);
	assert_int_equal(doc->sites[0].record.bytes_at_peak, 5000);
	assert_int_equal(doc->sites[1].record.bytes_at_peak, 77);
	gm_doc_close(doc);
}

/* A segment of 20 MiB with blocks at 2 and 10 MiB, one of 6 MiB without: as PyTorch counts. */
static void torch_holes(void **state)
{
	struct gm_torch_record torch = {.reserved_bytes = 26 * MIB, .allocated_bytes = 3 * MIB};
	struct test_file file;
	uint32_t segments, blocks, other;
	const struct gm_fragmentation *row;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	segments =
		test_add_site(&file, stack_at(&file, "seg a.py 1"), 0, GM_KIND_DEVICE, 0, 0, 0, 1);
	blocks = test_add_site(&file, stack_at(&file, "block a.py 2"), GM_LEVEL_TORCH,
			       GM_KIND_DEVICE, 0, 0, 0, 1);
	other = test_add_site(&file, stack_at(&file, "lib a.py 3"), 0, GM_KIND_DEVICE, 0, 1, 0,
			      4 * MIB);
	test_block(&file, segments, GM_SPACE_POINTER, 0x7000000000, 20 * MIB);
	test_block(&file, blocks, GM_SPACE_TORCH, 0x7000000000 + 2 * MIB, 1 * MIB);
	test_block(&file, blocks, GM_SPACE_TORCH, 0x7000000000 + 10 * MIB, 2 * MIB);
	for (unsigned i = 0; i < 2; i++)
		test_site(&file, i)->live_count = test_site(&file, i)->live_bytes = 1;
	TEST_ADD(&file, GM_TABLE_TORCH, &torch);
	test_sum(&file);
	doc = judge(&file);
	assert_int_equal(doc->fragmentation_count, 1);
	row = &doc->fragmentation[0];
	assert_string_equal(row->level, "torch");
	assert_int_equal(row->segments, 1);
	assert_int_equal(row->reserved_bytes, 20 * MIB);
	assert_int_equal(row->used_bytes, 3 * MIB);
	assert_int_equal(row->largest_free_bytes, 8 * MIB);
	assert_int_equal(row->split_bytes, 17 * MIB);
	assert_int_equal(row->releasable_bytes, 0);
	assert_int_equal(row->pinners_count, 1);
	assert_int_equal(row->pinners[0].site, blocks);
	assert_int_equal(row->pinners[0].hole_bytes, 17 * MIB);
	assert_int_equal(doc->sites[segments].verdict, GM_CACHED);
	assert_int_equal(doc->sites[other].verdict, GM_HELD);
	gm_doc_close(doc);
}

/* Three allocations of 600 B in one slab, one in another. */
static void slabs(void **state)
{
	const struct gm_fragmentation *row;
	struct test_file file;
	struct gm_doc *doc;
	uint32_t site;

	(void)state;
	test_begin(&file);
	site = test_add_site(&file, stack_at(&file, "s a.py 1"), 0, GM_KIND_DEVICE, 0, 0, 0, 1);
	test_block(&file, site, GM_SPACE_POINTER, 0x7000000000, 600);
	test_block(&file, site, GM_SPACE_POINTER, 0x7000000000 + 1024, 600);
	test_block(&file, site, GM_SPACE_POINTER, 0x7000000000 + MIB, 600);
	test_block(&file, site, GM_SPACE_POINTER, 0x7000000000 + 4 * MIB, MIB);
	test_sum(&file);
	doc = judge(&file);
	assert_int_equal(doc->fragmentation_count, 1);
	row = &doc->fragmentation[0];
	assert_string_equal(row->level, "slab");
	assert_int_equal(row->segments, 2);
	assert_int_equal(row->reserved_bytes, 4 * MIB);
	assert_int_equal(row->used_bytes, 3 * 1024 + MIB);
	assert_int_equal(row->largest_free_bytes, MIB);
	gm_doc_close(doc);
}

/* One out-of-memory event with these figures; its verdict. */
static const char *oom_verdict(struct gm_oom_record oom)
{
	struct test_file file;
	const char *verdict;
	struct gm_doc *doc;

	test_begin(&file);
	oom.stack = stack_at(&file, "Model.forward model.py 12");
	oom.function = oom.other_pids_string = GM_NONE;
	TEST_ADD(&file, GM_TABLE_OOMS, &oom);
	doc = judge(&file);
	assert_int_equal(doc->ooms_count, 1);
	assert_string_equal(doc->ooms[0].phase, "forward");
	assert_true(doc->ooms[0].advice_count > 0);
	assert_non_null(finding(doc, "oom"));
	verdict = doc->ooms[0].verdict;
	gm_doc_close(doc);
	return verdict;
}

static void oom_verdicts(void **state)
{
	struct gm_oom_record oom = {
		.requested_bytes = 2 * GIB,
		.free_bytes = GIB,
		.total_bytes = 8 * GIB,
		.tracked_bytes = 7 * GIB,
		.others_bytes = GM_NO_BYTES,
		.own_bytes = GM_NO_BYTES,
		.torch_reserved_bytes = GM_NO_BYTES,
		.torch_allocated_bytes = GM_NO_BYTES,
		.torch_largest_hole_bytes = GM_NO_BYTES,
	};

	(void)state;
	assert_string_equal(oom_verdict(oom), "exhausted");
	oom.others_bytes = 2 * GIB;
	assert_string_equal(oom_verdict(oom), "other-processes");
	oom.torch_reserved_bytes = 6 * GIB;
	oom.torch_allocated_bytes = 5 * GIB;
	assert_string_equal(oom_verdict(oom), "fragmented");
	oom.pending_free_bytes = 3 * GIB;
	assert_string_equal(oom_verdict(oom), "pending-frees");
	oom.verdict = GM_OOM_LIMIT;
	assert_string_equal(oom_verdict(oom), "limit");
	oom.verdict = GM_OOM_HOST;
	oom.device = GM_HOST;
	assert_string_equal(oom_verdict(oom), "host");
}

/* The exit code of the gates of a file with what is asked for in it. */
static int gate(bool leak, bool oom, bool error, struct gm_gate_options gates)
{
	struct gm_error_record bad = {.type = GM_ERROR_DOUBLE_FREE,
				      .count = 1,
				      .stack = GM_NONE,
				      .first_free_stack = GM_NONE,
				      .victim_site = GM_NONE};
	struct gm_oom_record failed = {.requested_bytes = GIB,
				       .stack = GM_NONE,
				       .free_bytes = GM_NO_BYTES,
				       .function = GM_NONE};
	struct test_file file;
	struct gm_doc *doc;
	int rc;

	test_begin(&file);
	test_add_site(&file, stack_at(&file, "a a.py 1"), 0, GM_KIND_DEVICE, 0, leak, 3, 2 * MIB);
	if (oom)
		TEST_ADD(&file, GM_TABLE_OOMS, &failed);
	if (error)
		TEST_ADD(&file, GM_TABLE_ERRORS, &bad);
	test_sum(&file);
	doc = judge(&file);
	gm_run_gates(doc, &gates, NULL);
	rc = gm_gates_exit(doc->gates, doc->gates_count);
	gm_doc_close(doc);
	return rc;
}

static void gate_ranks(void **state)
{
	struct gm_gate_options gates = gm_gate_defaults();

	(void)state;
	assert_int_equal(gate(false, false, false, gates), 0);
	assert_int_equal(gate(true, false, false, gates), 1);
	assert_int_equal(gate(true, true, false, gates), 4);
	assert_int_equal(gate(false, false, true, gates), 0);
	gates.no_errors = true;
	assert_int_equal(gate(false, false, true, gates), 5);
	assert_int_equal(gate(true, false, true, gates), 1);
	gates.allow_oom = true;
	assert_int_equal(gate(false, true, false, gates), 0);
	gates.min_bytes = 3 * MIB;
	assert_int_equal(gate(true, false, false, gates), 0);
	gates = gm_gate_defaults();
	gates.leaks = GM_LEAKS_OFF;
	assert_int_equal(gate(true, false, false, gates), 0);
	gates.leaks = GM_LEAKS_GROW;
	assert_int_equal(gate(true, false, false, gates), 0);
	gates.max_peak_bytes = 2 * MIB;
	assert_int_equal(gate(true, false, false, gates), 0);
	gates.max_peak_bytes = 2 * MIB - 1;
	assert_int_equal(gate(true, false, false, gates), 5);
}

/* A small request that failed is told before a large leak, as in the exit status. */
static void order_of_findings(void **state)
{
	struct gm_finding findings[] = {
		{.id = "usage.swing", .severity = GM_NOTE, .bytes = 9 * GIB},
		{.id = "leak.exit", .severity = GM_WARNING, .bytes = 8 * GIB},
		{.id = "error.double-free", .severity = GM_ERROR, .bytes = GM_NO_BYTES},
		{.id = "leak.grow", .severity = GM_ERROR, .bytes = 7 * GIB},
		{.id = "oom", .severity = GM_ERROR, .bytes = MIB},
		{.id = "oom", .severity = GM_ERROR, .bytes = 2 * MIB},
	};
	const struct gm_finding expected[] = {findings[5], findings[4], findings[3],
					      findings[2], findings[1], findings[0]};

	(void)state;
	gm_sort_findings(findings, 6);
	for (unsigned i = 0; i < 6; i++) {
		assert_string_equal(findings[i].id, expected[i].id);
		assert_int_equal(findings[i].bytes, expected[i].bytes);
	}
}

/* Peak 200 MiB, of which `of_peak` bytes were freed by the collector; the whole run: 400 MiB. */
static struct gm_doc *judge_garbage(uint64_t of_peak, uint64_t collected)
{
	struct test_file file;
	struct gm_site_record *site;
	struct gm_level_record level = {.device = 0,
					.level = GM_LEVEL_DRIVER,
					.peak_bytes = 200 * MIB,
					.collected_of_peak_bytes = of_peak};
	uint32_t few, many;

	test_begin(&file);
	few = test_add_site(&file, stack_at(&file, "few a.py 1"), 0, GM_KIND_DEVICE, 0, 0,
			    100, MIB);
	many = test_add_site(&file, stack_at(&file, "many a.py 2"), 0, GM_KIND_DEVICE, 0, 0,
			    400, MIB);
	site = test_site(&file, few);
	site->collected_bytes = MIB;
	site->collected_count = 1;
	site = test_site(&file, many);
	site->collected_bytes = collected;
	site->collected_count = collected / MIB;
	TEST_ADD(&file, GM_TABLE_LEVELS, &level);
	return judge(&file);
}

static void garbage_of_the_peak(void **state)
{
	const struct {
		uint64_t of_peak, collected, told; /* 0: nothing is */
	} cases[] = {
		{150 * MIB, 399 * MIB, 150 * MIB}, /* the peak's, not the run's */
		{20 * MIB, 399 * MIB, 20 * MIB},   /* a tenth */
		{20 * MIB - 1, 399 * MIB, 0},
		{150 * MIB, 10 * MIB, 0}, /* no more than the sites say */
		{0, 399 * MIB, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gm_doc *doc = judge_garbage(cases[i].of_peak, cases[i].collected);
		const struct gm_finding *found = finding(doc, "garbage.cycles");

		assert_int_equal(found != NULL, cases[i].told != 0);
		if (found) {
			assert_int_equal(found->bytes, cases[i].told);
			assert_int_equal(found->site, 1);
			assert_non_null(strstr(found->evidence, "400 allocations of 400.0 MiB"));
			assert_non_null(strstr(found->advice[0], "many"));
		}
		gm_doc_close(doc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_freed_in_a_loop),
		cmocka_unit_test(few_allocations_are_no_growth),
		cmocka_unit_test(stopped_long_before_the_end),
		cmocka_unit_test(long_teardown),
		cmocka_unit_test(kept_and_bounded),
		cmocka_unit_test(windows_of_marks),
		cmocka_unit_test(marks_move_the_exit_baseline),
		cmocka_unit_test(peak_epoch),
		cmocka_unit_test(torch_holes),
		cmocka_unit_test(slabs),
		cmocka_unit_test(oom_verdicts),
		cmocka_unit_test(gate_ranks),
		cmocka_unit_test(order_of_findings),
		cmocka_unit_test(garbage_of_the_peak),
	};

	return cmocka_run_group_tests_name("judges", tests, test_path_make, test_path_remove);
}
