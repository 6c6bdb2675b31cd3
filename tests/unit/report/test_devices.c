/*
 * Findings about devices and the driver's figure: what rises over samples, other processes, devices
 * that differ, segments given back in a loop, pools that tell nothing of their inside.
 */
#include "file.h"
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

	test_sum(file);
	assert_int_equal(test_write(file, path), 0);
	test_end(file);
	doc = gm_doc_open(path, &options, error, sizeof(error));
	assert_non_null(doc);
	return doc;
}

static const struct gm_finding *finding(const struct gm_doc *doc, const char *id)
{
	for (unsigned i = 0; i < doc->findings_count; i++)
		if (strcmp(doc->findings[i].id, id) == 0)
			return &doc->findings[i];
	return NULL;
}

static void device(struct test_file *file, uint64_t free_before)
{
	struct gm_device_record record = {.used = 1,
					  .total_bytes = 80 * GIB,
					  .capacity_bytes = GM_NO_BYTES,
					  .free_before_bytes = free_before,
					  .context_bytes = GM_NO_BYTES,
					  .context_stack = GM_NONE,
					  .name_string = GM_NONE};

	TEST_ADD(file, GM_TABLE_DEVICES, &record);
}

/* Samples at marks, `step` bytes more unexplained each; the first `jump` more once. */
static struct gm_doc *ledger(unsigned samples, uint64_t jump, uint64_t step)
{
	struct gm_ledger_record record = {.source = GM_LEDGER_NVML_PROCESS,
					  .reason = 3,
					  .device_used_bytes = GM_NO_BYTES,
					  .context_bytes = 512 * MIB};
	struct test_file file;

	test_begin(&file);
	device(&file, GM_NO_BYTES);
	for (unsigned i = 0; i < samples; i++) {
		record.time_ns = (i + 1) * 1000000ull;
		record.samples = i + 1;
		record.unexplained_bytes = (i ? jump : 0) + i * step;
		record.process_used_bytes = 40 * GIB + record.unexplained_bytes;
		record.tracked_physical_bytes = 40 * GIB - 512 * MIB;
		TEST_ADD(&file, GM_TABLE_LEDGER_HISTORY, &record);
	}
	TEST_ADD(&file, GM_TABLE_LEDGER, &record);
	return doc_of(&file);
}

/* llama.cpp#19639: 6.4 MiB a request that no allocation explains. */
static void a_rise_that_goes_on(void **state)
{
	struct gm_doc *doc = ledger(12, 0, 6710886);
	const struct gm_finding *found = finding(doc, "ledger.unexplained");

	(void)state;
	assert_non_null(found);
	assert_int_equal(found->severity, GM_WARNING);
	assert_int_equal(found->bytes, 11 * 6710886);
	assert_non_null(strstr(found->evidence, "6.40 MiB from mark to mark"));
	assert_int_equal(doc->ledger[0].history_count, 12);
	gm_doc_close(doc);
}

static void what_came_once(void **state)
{
	struct gm_doc *doc = ledger(12, 86 * MIB, 0);
	const struct gm_finding *found;

	(void)state;
	assert_null(finding(doc, "ledger.unexplained"));
	gm_doc_close(doc);
	doc = ledger(3, 86 * MIB, 0); /* too few to say that it does not go on */
	found = finding(doc, "ledger.unexplained");
	assert_non_null(found);
	assert_int_equal(found->severity, GM_NOTE);
	gm_doc_close(doc);
}

static void others_on_the_device(void **state)
{
	struct gm_oom_record oom = {.requested_bytes = GIB,
				    .total_bytes = 80 * GIB,
				    .others_bytes = 6 * GIB,
				    .torch_reserved_bytes = GM_NO_BYTES,
				    .torch_allocated_bytes = GM_NO_BYTES,
				    .stack = GM_NONE,
				    .function = GM_NONE};
	const struct gm_finding *found;
	struct test_file file;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	device(&file, 77 * GIB); /* 3 GiB are under 5 % */
	doc = doc_of(&file);
	assert_null(finding(doc, "neighbours"));
	gm_doc_close(doc);

	test_begin(&file);
	device(&file, 77 * GIB);
	oom.other_pids_string = test_string(&file, "99 4294967296\n7 2147483648 gone\n");
	TEST_ADD(&file, GM_TABLE_OOMS, &oom);
	doc = doc_of(&file);
	found = finding(doc, "neighbours");
	assert_non_null(found);
	assert_int_equal(found->bytes, 6 * GIB);
	assert_non_null(strstr(found->evidence, "pid 99 with 4.00 GiB, pid 7 with 2.00 GiB"));
	assert_non_null(strstr(found->advice[0], "1 of them is no process on this machine"));
	gm_doc_close(doc);
}

static void site(struct test_file *file, const char *frame, int number, uint64_t bytes)
{
	const char *const frames[] = {frame, "<module> /home/u/train.py 9", NULL};
	uint32_t added = test_add_site(file, test_stack(file, frames), 0, GM_KIND_DEVICE, number, 1,
				       0, bytes);

	test_site(file, added)->bytes_at_peak = bytes;
}

static void devices_that_differ(void **state)
{
	const struct gm_finding *found;
	struct test_file file;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	device(&file, GM_NO_BYTES);
	device(&file, GM_NO_BYTES);
	for (int i = 0; i < 2; i++) {
		site(&file, "Net.forward /home/u/net.py 1", i, (i ? 2 : 8) * GIB);
		site(&file, "Net._apply /home/u/net.py 2", i, 3 * GIB);
	}
	doc = doc_of(&file);
	found = finding(doc, "imbalance");
	assert_non_null(found);
	assert_int_equal(found->device, 0);
	assert_int_equal(found->bytes, 6 * GIB);
	assert_string_equal(found->evidence, "peaks of 11.00 GiB and 5.00 GiB; most of it in "
					     "activations 8.00 GiB against 2.00 GiB");
	gm_doc_close(doc);
}

/* jax#788: most of the device in one allocation, by design. */
static void a_pool_that_tells_nothing(void **state)
{
	struct gm_stack_record stack = {.frames = 1};
	const struct gm_finding *found;
	struct test_file file;
	struct gm_doc *doc;
	uint32_t number;

	(void)state;
	test_begin(&file);
	device(&file, GM_NO_BYTES);
	number =
		test_native_frame(&file, "/v/site-packages/jax_plugins/xla_cuda_plugin.so", 0x1234);
	stack.first = TEST_ADD(&file, GM_TABLE_STACK_FRAMES, &number);
	number = TEST_ADD(&file, GM_TABLE_STACKS, &stack);
	test_add_site(&file, number, 0, GM_KIND_VMM, 0, 1, 0, 60 * GIB);
	doc = doc_of(&file);
	assert_true(doc->framework);
	assert_int_equal(doc->sites[0].verdict, GM_HELD);
	assert_string_equal(doc->sites[0].why,
			    "a pool takes it at once by design; utilisation inside "
			    "it is not visible");
	assert_null(finding(doc, "leak.exit"));
	found = finding(doc, "pool.opaque");
	assert_non_null(found);
	assert_int_equal(found->bytes, 60 * GIB);
	assert_int_equal(found->severity, GM_NOTE);
	gm_doc_close(doc);
}

/* A framework that takes each array from the driver's pool, or without a cache, hides nothing. */
static void each_array_by_itself(void **state)
{
	static const struct {
		const char *module;
		uint8_t kind;
		unsigned live, freed;
		bool hides;
	} cases[] = {
		{"/v/site-packages/cupy/cuda/memory.cpython-312.so", GM_KIND_DEVICE, 1, 0, true},
		{"/v/site-packages/cupy/cuda/memory.cpython-312.so", GM_KIND_DEVICE, 5, 4, true},
		{"/v/site-packages/cupy/cuda/memory.cpython-312.so", GM_KIND_DEVICE, 4, 5, false},
		{"/v/site-packages/cupy/cuda/memory.cpython-312.so", GM_KIND_ASYNC, 1, 0, false},
		{"/v/site-packages/jax_plugins/xla_cuda_plugin.so", GM_KIND_VMM, 5, 4, true},
		{"/v/site-packages/jax_plugins/xla_cuda_plugin.so", GM_KIND_VMM, 1, 8, false},
		{"/v/site-packages/torch/lib/libc10_cuda.so", GM_KIND_DEVICE, 1, 0, false},
		{"/v/site-packages/torch/lib/libc10_cuda.so", GM_KIND_ASYNC, 1, 0, false},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gm_stack_record stack = {.frames = 1};
		struct test_file file;
		struct gm_doc *doc;
		uint32_t number;

		test_begin(&file);
		device(&file, GM_NO_BYTES);
		number = test_native_frame(&file, cases[i].module, 0x1234);
		stack.first = TEST_ADD(&file, GM_TABLE_STACK_FRAMES, &number);
		number = TEST_ADD(&file, GM_TABLE_STACKS, &stack);
		test_add_site(&file, number, 0, cases[i].kind, 0, cases[i].live, cases[i].freed,
			      GIB);
		doc = doc_of(&file);
		assert_true(doc->sites[0].caching);
		assert_int_equal(finding(doc, "pool.opaque") != NULL, cases[i].hides);
		gm_doc_close(doc);
	}
}

/* 6 of 8 GiB idle: what the pool was told to keep says why, and what helps. */
static void a_pool_that_keeps(void **state)
{
	static const struct {
		uint8_t configured;
		uint64_t threshold_bytes;
		const char *advice;
	} cases[] = {
		{0, 0, "the pool keeps it for reuse: lower"},
		{1, 0, "its release threshold is 0: the next wait for the stream gives it back"},
		{1, 5 * GIB, "the pool keeps up to 5.00 GiB for reuse: lower"},
		{1, GM_NO_BYTES - 1, "the pool keeps all of it for reuse: lower"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gm_pool_record pool = {.state = GM_STATE_LIVE,
					      .configured = cases[i].configured,
					      .release_threshold_bytes = cases[i].threshold_bytes,
					      .reserved_bytes = 8 * GIB,
					      .used_bytes = 2 * GIB};
		struct gm_level_record level = {.level = GM_LEVEL_DRIVER};
		const struct gm_finding *found;
		struct test_file file;
		struct gm_doc *doc;

		test_begin(&file);
		device(&file, GM_NO_BYTES);
		TEST_ADD(&file, GM_TABLE_LEVELS, &level);
		TEST_ADD(&file, GM_TABLE_POOLS, &pool);
		doc = doc_of(&file);
		found = finding(doc, "fragmentation.high");
		assert_non_null(found);
		assert_int_equal(found->bytes, 6 * GIB);
		assert_non_null(strstr(found->advice[0], cases[i].advice));
		gm_doc_close(doc);
	}
}

/* empty_cache in a loop: 1 GiB of reserve, 8 GiB given back. */
static void segments_given_back_in_a_loop(void **state)
{
	const char *const alloc[] = {"step /home/u/train.py 5", "<module> /home/u/train.py 9",
				     NULL};
	const char *const release[] = {"empty_cache /v/site-packages/torch/cuda/memory.py 1",
				       "loop /home/u/train.py 7", NULL};
	struct gm_torch_record torch = {.reserved_bytes = GIB,
					.reserved_peak_bytes = GIB,
					.reserved_total_bytes = 9 * GIB,
					.released_total_bytes = 8 * GIB,
					.releases = 8,
					.rounds = 7,
					.first_release_ns = 100000000,
					.last_release_ns = 800000000};
	const struct gm_finding *found;
	uint32_t site;
	struct test_file file;
	struct gm_doc *doc;

	(void)state;
	test_begin(&file);
	device(&file, GM_NO_BYTES);
	site = test_add_site(&file, test_stack(&file, alloc), 0, GM_KIND_DEVICE, 0, 1, 8, GIB);
	test_site(&file, site)->flags = GM_SITE_TORCH;
	torch.release_stack = test_stack(&file, release);
	TEST_ADD(&file, GM_TABLE_TORCH, &torch);
	doc = doc_of(&file);
	found = finding(doc, "cache.thrash");
	assert_non_null(found);
	assert_int_equal(found->bytes, 8 * GIB);
	assert_non_null(strstr(found->evidence, "8 segments in 7 rounds, within 700.0 ms"));
	assert_string_equal(found->advice[0], "most is given back at loop (train.py:7)");
	gm_doc_close(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rise_that_goes_on),
		cmocka_unit_test(what_came_once),
		cmocka_unit_test(others_on_the_device),
		cmocka_unit_test(devices_that_differ),
		cmocka_unit_test(a_pool_that_tells_nothing),
		cmocka_unit_test(each_array_by_itself),
		cmocka_unit_test(a_pool_that_keeps),
		cmocka_unit_test(segments_given_back_in_a_loop),
	};

	return cmocka_run_group_tests(tests, test_path_make, test_path_remove);
}
