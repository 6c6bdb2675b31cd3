/*
 * Out-of-memory events: what the memory was for, what changed since the mark, other processes, the
 * library that hides the error, and advice that reads the settings first. On a file of a training
 * run whose figures are written down here.
 */
#include "file.h"
#include "report/judge/alloc_conf.h"
#include "report/judge/judge.h"
#include "report/doc/options.h"
#include "report/open/open.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static const char *const path = test_path;

static const struct gm_options options = {
	.device = -1, .kind = -1, .level = -1, .warmup = 2, .top = 20};

static struct gm_doc *doc_of(struct test_file *file)
{
	char error[512];
	struct gm_doc *doc;

	assert_int_equal(test_write(file, path), 0);
	test_end(file);
	doc = gm_doc_open(path, &options, error, sizeof(error));
	assert_non_null(doc);
	return doc;
}

static bool advised(const struct gm_oom *oom, const char *part)
{
	for (unsigned i = 0; i < oom->advice_count; i++)
		if (strstr(oom->advice[i], part))
			return true;
	return false;
}

static uint32_t holder(struct test_file *file, const char *frame, uint64_t before, uint64_t bytes)
{
	const char *const frames[] = {frame, "<module> /home/u/train.py 80", NULL};
	uint32_t site = test_add_site(file, test_stack(file, frames), GM_LEVEL_TORCH,
				      GM_KIND_DEVICE, 0, 1, 0, bytes);
	struct gm_site_record *record = test_site(file, site);
	struct gm_oom_site_record copy = {.site = site, .count = 1, .bytes = bytes};

	record->window_current = 1;
	record->windows[0] = (struct gm_window){before, before, before};
	record->windows[1] = (struct gm_window){bytes, bytes, bytes};
	TEST_ADD(file, GM_TABLE_OOM_SITES, &copy);
	return site;
}

/*
 * Activations 17.5 GiB, Adam's state 4 GiB, weights 2 GiB, and a pool's 1 GiB; 0.5 GiB free, 1 GiB
 * asked for in the forward pass. Since the mark "step 2" the activations came, and 1 GiB of state.
 */
static struct gm_oom_record training(struct test_file *file)
{
	struct gm_mark_record mark = {.source = GM_MARK_PROGRAM, .time_ns = 500000000};
	struct gm_mark_record signal = {.source = GM_MARK_SNAPSHOT, .time_ns = 600000000};
	struct gm_oom_record oom = {
		.time_ns = 700000000,
		.requested_bytes = GIB,
		.free_bytes = GIB / 2,
		.total_bytes = 26 * GIB,
		.tracked_bytes = 24 * GIB + GIB / 2,
		.others_bytes = GM_NO_BYTES,
		.torch_reserved_bytes = 24 * GIB + GIB / 4,
		.torch_allocated_bytes = 24 * GIB,
		.torch_largest_hole_bytes = 100 * MIB,
		.function = GM_NONE,
		.error = 2,
		.level = GM_LEVEL_TORCH,
		.other_pids_string = GM_NONE,
		.sites = 4,
	};

	test_begin(file);
	holder(file, "Net.forward /home/u/net.py 30", 0, 17 * GIB + GIB / 2);
	holder(file, "Adam._init_group /x/site-packages/torch/optim/adam.py 9", 3 * GIB, 4 * GIB);
	holder(file, "Module.to /x/site-packages/torch/nn/modules/module.py 9", 2 * GIB, 2 * GIB);
	holder(file, "table /home/u/table.py 3", GIB / 2 * 3, GIB / 2);
	oom.stack = test_site(file, 0)->stack;
	mark.name_string = test_string(file, "step 2");
	signal.name_string = test_string(file, "snapshot");
	TEST_ADD(file, GM_TABLE_MARKS, &mark);
	TEST_ADD(file, GM_TABLE_MARKS, &signal);
	file->header.window_marks = 1;
	file->header.window_current = 1;
	file->header.window_mark[0] = GM_NONE;
	file->header.window_mark[1] = 0;
	return oom;
}

static void what_it_was_for(void **state)
{
	struct test_file file;
	struct gm_oom_record record = training(&file);
	const struct gm_oom *oom;
	struct gm_doc *doc;

	(void)state;
	TEST_ADD(&file, GM_TABLE_OOMS, &record);
	doc = doc_of(&file);
	oom = &doc->ooms[0];
	assert_string_equal(oom->verdict, "exhausted");
	assert_string_equal(oom->phase, "forward");
	assert_int_equal(oom->categories_count, 4);
	assert_string_equal(oom->categories[0].what, "activations");
	assert_int_equal(oom->categories[0].bytes, 17 * GIB + GIB / 2);
	assert_string_equal(oom->categories[1].what, "optimizer state");
	assert_int_equal(oom->categories[1].bytes, 4 * GIB);
	assert_string_equal(oom->categories[3].what, "other");
	assert_int_equal(oom->categories[3].bytes, GIB / 2);
	assert_true(advised(oom, "activations are 17.50 GiB: half the batch saves about 8.75 GiB"));
	assert_true(advised(oom,
			    "the optimizer's state is 4.00 GiB: an 8-bit optimizer saves about "
			    "3.00 GiB"));
	assert_false(advised(oom, "weights are")); /* not what fills the device */
	assert_true(advised(oom, "512.0 MiB more is needed; the largest holder is Net.forward "
				 "(net.py:30) with 17.50 GiB"));
	/* One site holds less than at the mark, one the same: neither is a change. */
	assert_string_equal(oom->mark, "step 2");
	assert_int_equal(oom->changes_count, 2);
	assert_int_equal(oom->changes[0].bytes, 17 * GIB + GIB / 2);
	assert_int_equal(oom->changes[1].bytes, GIB);
	assert_true(advised(oom, "since the mark \"step 2\" most was added by Net.forward"));
	gm_doc_close(doc);
}

/* The same run with another request, and 4 GiB less allocated of the same reserve; `settings` is
 * the program's environment. */
static bool says(uint64_t requested_bytes, const char *settings, const char *part)
{
	struct test_file file;
	struct gm_oom_record record = training(&file);
	struct gm_doc *doc;
	bool said;

	record.requested_bytes = requested_bytes;
	record.torch_allocated_bytes -= 4 * GIB;
	TEST_ADD(&file, GM_TABLE_OOMS, &record);
	if (settings)
		file.header.environment_string = test_string(&file, settings);
	doc = doc_of(&file);
	said = advised(&doc->ooms[0], part);
	gm_doc_close(doc);
	return said;
}

static void more_than_the_device_has(void **state)
{
	(void)state;
	assert_true(
		says(27 * GIB, NULL, "27.00 GiB is more than the whole device has (26.00 GiB)"));
	assert_false(says(27 * GIB, NULL, "more is needed"));
	assert_false(says(26 * GIB, NULL, "is more than the whole device has"));
}

/* 0.5 GiB free and 4.25 GiB of 24.25 in holes: 0.7 GiB would fit, and a sixth of the reserve is
 * idle. */
static void advice_reads_the_settings(void **state)
{
	const uint64_t fits = 700 * MIB;

	(void)state;
	assert_true(says(fits, NULL,
			 "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: 4.25 GiB"));
	assert_true(says(fits, NULL, "or max_split_size_mb"));
	assert_true(says(fits, "PYTORCH_ALLOC_CONF=max_split_size_mb:64\n",
			 "set PYTORCH_ALLOC_CONF=expandable_segments:True"));
	assert_true(says(fits, "PYTORCH_ALLOC_CONF=max_split_size_mb:64\n",
			 "max_split_size_mb:64 is already set"));
	assert_false(
		says(fits, "PYTORCH_ALLOC_CONF=max_split_size_mb:64\n", "or max_split_size_mb"));
	assert_false(says(fits, "PYTORCH_CUDA_ALLOC_CONF=a:[1,b:2], expandable_segments : True\n",
			  "=expandable_segments"));
	assert_true(says(fits, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False\n",
			 "=expandable_segments:True"));
	assert_false(
		says(fits, "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync\n", "=expandable"));
	assert_true(says(fits, "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync\n",
			 "cudaMemPoolTrimTo"));
}

/* pytorch#128601: cuBLAS's own allocation fails and the program sees CUBLAS_STATUS_ALLOC_FAILED. */
static void behind_a_library(void **state)
{
	struct test_file file;
	struct gm_oom_record record = training(&file);
	struct gm_stack_record stack = {.frames = 2};
	const struct gm_oom *oom;
	struct gm_doc *doc;
	uint32_t frame;

	(void)state;
	frame = test_native_frame(&file, "/x/libcublas.so.13", 0x1234);
	stack.first = TEST_ADD(&file, GM_TABLE_STACK_FRAMES, &frame);
	frame = test_native_frame(&file, "/home/u/program", 0x1234);
	TEST_ADD(&file, GM_TABLE_STACK_FRAMES, &frame);
	record.stack = TEST_ADD(&file, GM_TABLE_STACKS, &stack);
	record.function = test_function(&file, "cuMemAlloc_v2");
	record.others_bytes = 20 * GIB;
	record.other_pids_string = test_string(&file, "4711 16106127360\n812 5368709120 gone\n");
	TEST_ADD(&file, GM_TABLE_OOMS, &record);
	doc = doc_of(&file);
	oom = &doc->ooms[0];
	assert_string_equal(oom->verdict, "other-processes");
	assert_string_equal(oom->library, "libcublas.so.13");
	assert_true(advised(oom, "libcublas.so.13 asked for it: the program sees "
				 "CUBLAS_STATUS_ALLOC_FAILED"));
	assert_int_equal(oom->processes_count, 2);
	assert_int_equal(oom->processes[1].pid, 812);
	assert_true(oom->processes[1].gone);
	assert_true(advised(oom, "20.00 GiB (pid 4711 with 15.00 GiB, pid 812 with 5.00 GiB, ended "
				 "badly or in another container)"));
	assert_true(advised(oom, "1 of them is not running here"));
	gm_doc_close(doc);
}

/* pytorch#27600: the program went on, and what forward had taken before is still there. */
static void kept_by_a_traceback(void **state)
{
	struct test_file file;
	struct gm_oom_record record = training(&file);
	struct gm_torch_record torch = {.allocations = 4};
	struct gm_doc *doc;

	(void)state;
	file.header.last_event_ns = 800000000;
	TEST_ADD(&file, GM_TABLE_TORCH, &torch);
	TEST_ADD(&file, GM_TABLE_OOMS, &record);
	doc = doc_of(&file);
	assert_int_equal(doc->ooms[0].kept_bytes, 17 * GIB + GIB / 2);
	assert_true(advised(&doc->ooms[0],
			    "17.50 GiB of activations from before it are still live, "
			    "most from Net.forward (net.py:30)"));
	gm_doc_close(doc);

	record = training(&file);
	TEST_ADD(&file, GM_TABLE_TORCH, &torch);
	for (uint32_t i = 0; i < record.sites; i++)
		test_site(&file, i)->last_ns = record.time_ns; /* it ended there */
	TEST_ADD(&file, GM_TABLE_OOMS, &record);
	doc = doc_of(&file);
	assert_int_equal(doc->ooms[0].kept_bytes, 0);
	gm_doc_close(doc);
}

/* A file that has more of them than a shim ever writes is damaged. */
static void more_than_are_kept(void **state)
{
	struct test_file file;
	struct gm_oom_record record = training(&file);
	struct gm_doc *doc;

	(void)state;
	for (unsigned i = 0; i <= GM_OOMS_KEPT; i++)
		TEST_ADD(&file, GM_TABLE_OOMS, &record);
	doc = doc_of(&file);
	assert_int_equal(doc->ooms_count, GM_OOMS_KEPT);
	gm_doc_close(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_was_for),
		cmocka_unit_test(more_than_the_device_has),
		cmocka_unit_test(advice_reads_the_settings),
		cmocka_unit_test(behind_a_library),
		cmocka_unit_test(kept_by_a_traceback),
		cmocka_unit_test(more_than_are_kept),
	};

	return cmocka_run_group_tests(tests, test_path_make, test_path_remove);
}
