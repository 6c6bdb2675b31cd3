/*
 * The model of PyTorch's allocator: each test is a sequence of requests whose figures follow from
 * the rules of c10/cuda/CUDACachingAllocator.cpp by hand.
 */
#include "report/whatif/allocator.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)

static const struct gm_model_pool pools[] = {{0, 0}, {0, 7}, {2, 9}};

static struct gm_model_options options;

/* A model under a setting, on a device that gives PyTorch so much. */
static struct gm_model *model_of(const char *conf, uint64_t device_bytes)
{
	char error[256] = "";

	options = (struct gm_model_options){.rules = gm_torch_rules(211),
					    .device_bytes = device_bytes,
					    .total_bytes = device_bytes,
					    .pools = pools,
					    .pools_count = 3};
	if (!gm_torch_settings_read(&options.settings, conf, options.rules, error, sizeof(error)))
		fail_msg("%s: %s", conf, error);
	return gm_model_new(&options);
}

static void reserved_is(const struct gm_model *model, uint64_t bytes)
{
	assert_int_equal(gm_model_figures(model)->reserved_bytes, bytes);
}

static void segments_hold_small_medium_and_large_blocks(void **state)
{
	struct gm_model *model = model_of("", UINT64_MAX);

	(void)state;
	gm_model_alloc(model, 0, 1);
	reserved_is(model, 2 * MIB);
	assert_int_equal(gm_model_figures(model)->allocated_bytes, 512);
	gm_model_alloc(model, 0, MIB);
	reserved_is(model, 2 * MIB);
	gm_model_alloc(model, 0, MIB + 1);
	reserved_is(model, 22 * MIB);
	gm_model_alloc(model, 0, 10 * MIB - 1);
	reserved_is(model, 22 * MIB);
	gm_model_alloc(model, 0, 11 * MIB);
	reserved_is(model, 34 * MIB);
	/* a rest of 1 MiB is not split off */
	assert_int_equal(gm_model_figures(model)->allocated_bytes,
			 512 + MIB + (MIB + 512) + 10 * MIB + 12 * MIB);
	gm_model_free(model);
}

static void streams_and_pools_do_not_share_blocks(void **state)
{
	struct gm_model *model = model_of("", UINT64_MAX);
	uint32_t block = gm_model_alloc(model, 0, 30 * MIB);

	(void)state;
	gm_model_free_block(model, block);
	gm_model_alloc(model, 1, 30 * MIB);
	reserved_is(model, 60 * MIB);
	gm_model_alloc(model, 2, 30 * MIB);
	reserved_is(model, 90 * MIB);
	gm_model_alloc(model, 0, 30 * MIB);
	reserved_is(model, 90 * MIB);
	gm_model_free(model);
}

static void the_smallest_block_that_is_large_enough_is_taken(void **state)
{
	struct gm_model *model = model_of("", UINT64_MAX);
	uint32_t large = gm_model_alloc(model, 0, 60 * MIB),
		 middle = gm_model_alloc(model, 0, 40 * MIB);

	(void)state;
	gm_model_free_block(model, large);
	gm_model_free_block(model, middle);
	gm_model_alloc(model, 0, 39 * MIB); /* of the 40, whole */
	gm_model_alloc(model, 0, 58 * MIB); /* of the 60, split */
	reserved_is(model, 100 * MIB);
	assert_int_equal(gm_model_figures(model)->allocated_bytes, 98 * MIB);
	gm_model_alloc(model, 0, 2 * MIB); /* the rest of the 60 */
	reserved_is(model, 100 * MIB);
	gm_model_free(model);
}

static void free_neighbours_are_one_block(void **state)
{
	struct gm_model *model = model_of("", UINT64_MAX);
	uint32_t blocks[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		blocks[i] = gm_model_alloc(model, 0, 5 * MIB);
	reserved_is(model, 20 * MIB);
	gm_model_free_block(model, blocks[1]);
	gm_model_free_block(model, blocks[3]);
	gm_model_alloc(model, 0, 6 * MIB);
	reserved_is(model, 40 * MIB);
	gm_model_free_block(model, blocks[2]);
	gm_model_alloc(model, 0, 15 * MIB);
	reserved_is(model, 40 * MIB);
	gm_model_free(model);
}

static void large_blocks_are_neither_split_nor_used_for_small_requests(void **state)
{
	struct gm_model *model = model_of("max_split_size_mb:100", UINT64_MAX);
	uint32_t block = gm_model_alloc(model, 0, 200 * MIB);

	(void)state;
	gm_model_free_block(model, block);
	gm_model_alloc(model, 0, 60 * MIB);
	reserved_is(model, 260 * MIB);
	block = gm_model_alloc(model, 0, 179 * MIB); /* 21 of the 200 would be wasted */
	reserved_is(model, 260 * MIB + 180 * MIB);
	gm_model_free_block(model, block);
	gm_model_alloc(model, 0, 181 * MIB);
	reserved_is(model, 440 * MIB);
	assert_int_equal(gm_model_figures(model)->allocated_bytes, 60 * MIB + 200 * MIB);
	gm_model_free(model);
}

static void expandable_segments_grow_by_pages(void **state)
{
	struct gm_model *model = model_of("expandable_segments:True", 10 * GIB);
	uint32_t block;

	(void)state;
	gm_model_alloc(model, 0, 100);
	reserved_is(model, 2 * MIB);
	block = gm_model_alloc(model, 0, 30 * MIB);
	reserved_is(model, 42 * MIB);
	gm_model_alloc(model, 0, 15 * MIB); /* 10 are mapped behind it */
	reserved_is(model, 62 * MIB);
	gm_model_free_block(model, block);
	gm_model_empty_cache(model); /* [0, 30) is free: one page; of [45, 60) none is whole */
	reserved_is(model, 42 * MIB);
	gm_model_alloc(model, 0, 30 * MIB); /* where it was: the unmapped page comes back */
	reserved_is(model, 62 * MIB);
	assert_int_equal(gm_model_figures(model)->reserved_peak_bytes, 62 * MIB);
	gm_model_free(model);
}

static void a_retry_gives_back_what_is_free_and_waits_for_streams(void **state)
{
	struct gm_model *model = model_of("", 100 * MIB);
	uint32_t free_block = gm_model_alloc(model, 0, 40 * MIB);
	uint32_t pending = gm_model_alloc(model, 0, 30 * MIB);

	(void)state;
	gm_model_free_block(model, free_block);
	pending = gm_model_free_requested(model, pending);
	assert_int_equal(gm_model_figures(model)->allocated_bytes, 0);
	assert_int_not_equal(gm_model_alloc(model, 0, 90 * MIB), GM_NO_BLOCK);
	assert_int_equal(gm_model_figures(model)->retries, 1);
	assert_int_equal(gm_model_figures(model)->ooms, 0);
	reserved_is(model, 90 * MIB);
	gm_model_free_completed(model, pending); /* nothing is left to be completed */
	assert_int_equal(gm_model_alloc(model, 0, 12 * MIB), GM_NO_BLOCK);
	assert_int_equal(gm_model_figures(model)->retries, 2);
	assert_int_equal(gm_model_figures(model)->ooms, 1);
	gm_model_free(model);
}

static void a_private_pool_gives_nothing_back(void **state)
{
	struct gm_model *model = model_of("", 100 * MIB);

	(void)state;
	gm_model_free_block(model, gm_model_alloc(model, 0, 60 * MIB));
	assert_int_equal(gm_model_alloc(model, 2, 60 * MIB), GM_NO_BLOCK);
	assert_int_equal(gm_model_figures(model)->retries, 0);
	reserved_is(model, 60 * MIB);
	gm_model_free(model);
}

static void a_fraction_limits_and_garbage_is_collected_by_age(void **state)
{
	char error[256];
	struct gm_model *model;
	uint32_t a, b;

	(void)state;
	gm_model_free(model_of("", 1000 * MIB));
	assert_true(gm_torch_settings_read(&options.settings, "garbage_collection_threshold:0.5",
					   options.rules, error, sizeof(error)));
	options.fraction = 0.2; /* 200 MiB, garbage from 100 MiB on */
	model = gm_model_new(&options);
	a = gm_model_alloc(model, 0, 60 * MIB);
	b = gm_model_alloc(model, 0, 50 * MIB);
	gm_model_free_block(model, a);
	for (unsigned i = 0; i < 5; i++)
		gm_model_alloc(model, 0, 2 * MIB); /* ages the 60; one segment of 20 */
	gm_model_free_block(model, b);
	reserved_is(model, 110 * MIB); /* the 2 MiB blocks come from the 60 */
	gm_model_alloc(model, 0, 80 * MIB);
	reserved_is(model, 60 * MIB + 80 * MIB); /* the 50 was the only idle segment */
	assert_int_equal(gm_model_figures(model)->retries, 0);
	assert_int_equal(gm_model_alloc(model, 0, 61 * MIB), GM_NO_BLOCK);
	gm_model_free(model);
}

static uint64_t rounded(const char *conf, unsigned version, uint64_t bytes)
{
	struct gm_torch_settings settings;
	char error[256];

	if (!gm_torch_settings_read(&settings, conf, gm_torch_rules(version), error, sizeof(error)))
		fail_msg("%s: %s", conf, error);
	return gm_torch_round_size(&settings, bytes);
}

static void sizes_are_rounded(void **state)
{
	(void)state;
	assert_int_equal(rounded("", 211, 0), 512);
	assert_int_equal(rounded("", 211, 513), 1024);
	assert_int_equal(rounded("roundup_power2_divisions:4", 211, 1200), 1536);
	assert_int_equal(rounded("roundup_power2_divisions:4", 211, 5 * MIB), 5 * MIB);
	assert_int_equal(rounded("roundup_power2_divisions:4", 211, 5 * MIB + 1), 6 * MIB);
	assert_int_equal(rounded("roundup_power2_divisions:4", 211, 4 * MIB), 4 * MIB);
	/* intervals: under 256 MiB 1, from 256 2, from 512 4 */
	assert_int_equal(rounded("roundup_power2_divisions:[256:1,512:2,>:4]", 211, 300 * MIB - 1),
			 300 * MIB);
	assert_int_equal(rounded("roundup_power2_divisions:[256:1,512:2,>:4]", 211, 600 * MIB),
			 768 * MIB);
	assert_int_equal(rounded("roundup_power2_divisions:[256:1,512:2,>:4]", 211, 1100 * MIB),
			 1280 * MIB);
	/* until 2.9 the rest began with the interval named last */
	assert_int_equal(rounded("roundup_power2_divisions:[256:1,512:2,>:4]", 209, 600 * MIB),
			 640 * MIB);
}

static bool readable(const char *conf, unsigned version)
{
	struct gm_torch_settings settings;
	char error[256];

	return gm_torch_settings_read(&settings, conf, gm_torch_rules(version), error,
				      sizeof(error));
}

static void settings_that_pytorch_refuses_are_refused(void **state)
{
	(void)state;
	assert_true(readable(" expandable_segments : True , max_split_size_mb:128", 211));
	assert_true(readable("backend:native,release_lock_on_cudamalloc:True", 211));
	assert_true(readable("max_split_size_mb:20", 211));
	assert_false(readable("max_split_size_mb:20", 209));
	assert_true(readable("per_process_memory_fraction:0.5", 210));
	assert_false(readable("per_process_memory_fraction:0.5", 209));
	assert_false(readable("backend:own", 211));
	assert_true(readable("backend:cudaMallocAsync", 211));
	assert_true(readable("release_threshold:64MiB", 211));
	assert_false(readable("release_threshold:much", 211));
	assert_false(readable("expandable_segments:true", 211));
	assert_false(readable("expandable_segments", 211));
	assert_false(readable("max_split_size_mb:64,,", 211));
	assert_false(readable("roundup_power2_divisions:3", 211));
	assert_false(readable("roundup_power2_divisions:[3:2]", 211));
	assert_false(readable("roundup_power2_divisions:[256:2", 211));
	assert_false(readable("garbage_collection_threshold:1.0", 211));
	assert_false(readable("what:1", 211));
	assert_null(gm_torch_rules(205));
	assert_null(gm_torch_rules(213));
}

/* Blocks are kept in order of address; this follows them with plain arrays. */
static void requests_at_random_never_overlap(void **state)
{
	static const char *const confs[] = {"", "expandable_segments:True", "max_split_size_mb:32",
					    "roundup_power2_divisions:8"};
	unsigned random = 1;

	(void)state;
	for (unsigned c = 0; c < 4; c++) {
		struct gm_model *model = model_of(confs[c], 3 * GIB);
		uint32_t live[64];
		unsigned count = 0;

		for (unsigned i = 0; i < 20000; i++) {
			random = random * 1103515245 + 12345;
			if (count == 64 || (count && (random >> 16) % 3 == 0)) {
				unsigned at = (random >> 20) % count;

				gm_model_free_block(model, live[at]);
				live[at] = live[--count];
			} else {
				uint64_t bytes = 1ull << ((random >> 16) % 27);

				live[count] = gm_model_alloc(model, (random >> 8) % 2,
							     bytes + random % bytes);
				count += live[count] != GM_NO_BLOCK;
			}
		}
		while (count)
			gm_model_free_block(model, live[--count]);
		assert_int_equal(gm_model_figures(model)->allocated_bytes, 0);
		gm_model_empty_cache(model); /* all is one block for each segment again */
		reserved_is(model, 0);
		gm_model_free(model);
	}
}

/* Offsets from the context's address, as in the recordings of `requests` and `churn_large`. */
static void segments_show_where_regions_lie(void **state)
{
	struct gm_recorded_regions regions = {0};
	uint64_t context = 1ull << 46;

	(void)state;
	gm_regions_learn(&regions, context, 20 * MIB, 0);
	gm_regions_learn(&regions, context - 520 * MIB, 20 * MIB, 5);
	assert_true(regions.known);
	assert_int_equal(regions.context, context);
	gm_regions_learn(&regions, context + 5624 * MIB, 20 * MIB, 6);
	gm_regions_learn(&regions, context + 5496 * MIB, 20 * MIB, 7);
	assert_int_equal(regions.above_at, 6);
	assert_int_equal(regions.opened_at, UINT32_MAX);
	gm_regions_learn(&regions, context - 488 * MIB, 20 * MIB, 9);
	gm_regions_learn(&regions, context - 468 * MIB, 20 * MIB, 10);
	assert_int_equal(regions.opened_at, 9);
	regions = (struct gm_recorded_regions){0};
	gm_regions_learn(&regions, context - 584 * MIB, 70 * MIB, 0); /* the first is a region */
	assert_int_equal(regions.context, context);
	gm_regions_learn(&regions, context, 12 * MIB, 1);
	gm_regions_learn(&regions, context - 1256 * MIB, 502 * MIB, 2);
	assert_int_equal(regions.opened_at, UINT32_MAX);
	assert_int_equal(regions.above_at, UINT32_MAX);
}

static void the_driver_takes_the_lowest_hole_or_a_new_region(void **state)
{
	struct gm_address_space space;
	uint64_t context;

	(void)state;
	gm_address_space_begin(&space, NULL);
	context = gm_address_space_take(&space, 20 * MIB);
	assert_int_equal(gm_address_space_take(&space, 70 * MIB), context - 584 * MIB);
	assert_int_equal(gm_address_space_take(&space, 26 * MIB), context - 514 * MIB);
	gm_address_space_change(&space, GM_REGIONS_ABOVE);
	assert_true(gm_address_space_take(&space, 40 * MIB) > context + 488 * MIB);
	gm_address_space_change(&space, GM_REGIONS_OPENED);
	assert_int_equal(gm_address_space_take(&space, 400 * MIB), context - 488 * MIB);
	assert_int_equal(gm_address_space_take(&space, 12 * MIB), context - 88 * MIB);
	assert_int_equal(gm_address_space_take(&space, 64 * MIB), context - 648 * MIB);
	gm_address_space_give(&space, context - 584 * MIB, 70 * MIB);
	assert_int_equal(gm_address_space_take(&space, 70 * MIB), context - 584 * MIB);
	gm_address_space_free(&space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_show_where_regions_lie),
		cmocka_unit_test(the_driver_takes_the_lowest_hole_or_a_new_region),
		cmocka_unit_test(segments_hold_small_medium_and_large_blocks),
		cmocka_unit_test(streams_and_pools_do_not_share_blocks),
		cmocka_unit_test(the_smallest_block_that_is_large_enough_is_taken),
		cmocka_unit_test(free_neighbours_are_one_block),
		cmocka_unit_test(large_blocks_are_neither_split_nor_used_for_small_requests),
		cmocka_unit_test(expandable_segments_grow_by_pages),
		cmocka_unit_test(a_retry_gives_back_what_is_free_and_waits_for_streams),
		cmocka_unit_test(a_private_pool_gives_nothing_back),
		cmocka_unit_test(a_fraction_limits_and_garbage_is_collected_by_age),
		cmocka_unit_test(sizes_are_rounded),
		cmocka_unit_test(settings_that_pytorch_refuses_are_refused),
		cmocka_unit_test(requests_at_random_never_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
