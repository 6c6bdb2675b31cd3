/*
 * The steps of the accounting, against figures worked out by hand: who holds what at the peak of a
 * level, windows, PyTorch's record, and counting again.
 */
#include "../stack/cmocka_all.h"
#include "account/recount.h"
#include "account/series.h"
#include "account/site_windows.h"

#include <string.h>

static struct gm_site_record sites[2];
static struct gm_level_record level;
static struct gm_usage_record usage;

static int begin(void **unused)
{
	(void)unused;
	memset(sites, 0, sizeof(sites));
	memset(&level, 0, sizeof(level));
	memset(&usage, 0, sizeof(usage));
	for (unsigned i = 0; i < 2; i++)
		gm_site_begin(&sites[i], 7);
	return 0;
}

static void add(unsigned site, uint64_t bytes, uint64_t serial)
{
	gm_count_alloc(&(struct gm_counters){&sites[site], &level, &usage, true}, bytes, serial,
		       10 * serial);
}

static void take(unsigned site, uint64_t bytes)
{
	gm_count_free(&(struct gm_counters){&sites[site], &level, &usage, true}, bytes, 1, false);
}

/*
 * Site 0 has 100 and site 1 has 50 when the level is at 150; site 0 gives all back, site 1
 * takes 20. Then the level stands at 150 again, with 30 of site 0 and 120 of site 1: this is the
 * peak.
 */
static void the_last_moment_at_the_peak(void **unused)
{
	(void)unused;
	add(0, 100, 1);
	add(1, 50, 2);
	take(0, 100);
	add(1, 20, 3);
	gm_site_settle(&sites[0].figures, &level);
	assert_int_equal(sites[0].bytes_at_peak, 100);
	assert_int_equal(sites[1].bytes_at_peak, 50);
	assert_int_equal(level.peak_at_ns, 20);
	add(0, 30, 4);
	add(1, 50, 5);
	take(1, 50);
	take(0, 30);
	assert_int_equal(sites[0].bytes_at_peak, 30);
	assert_int_equal(sites[1].bytes_at_peak, 120);
	assert_int_equal(level.peak_bytes, 150);
	assert_int_equal(level.peak_at_ns, 20); /* when it was reached first */
	assert_int_equal(level.current_bytes, 70);
	assert_int_equal(level.current_count, 2);
	assert_int_equal(sites[0].level_max_bytes, 100);
	assert_int_equal(sites[1].level_max_bytes, 150);
	assert_int_equal(usage.peak_bytes, 150);
	assert_int_equal(usage.allocated_bytes - usage.freed_bytes, 70);
	assert_int_equal(usage.allocations, 5);
	assert_int_equal(usage.frees, 3);
}

static void a_site(void **unused)
{
	(void)unused;
	add(0, 100, 5);
	add(0, 40, 6);
	gm_site_add_stray(&sites[0].figures, 40, 1);
	gm_count_free(&(struct gm_counters){.site = &sites[0]}, 40, 1, true);
	gm_count_free(&(struct gm_counters){.site = &sites[0]}, 30, 0, false); /* a part of 100 */
	gm_count_resize(&(struct gm_counters){.site = &sites[0]}, 200, 0);
	assert_int_equal(sites[0].live_bytes, 270);
	assert_int_equal(sites[0].live_count, 1);
	assert_int_equal(sites[0].frees, 1);
	assert_int_equal(sites[0].allocated_bytes, 340);
	assert_int_equal(sites[0].peak_bytes, 270);
	assert_int_equal(sites[0].stray_bytes + sites[0].stray_count, 0);
	assert_int_equal(sites[0].first_serial, 5);
	assert_int_equal(sites[0].first_ns, 7);
	assert_int_equal(sites[0].last_ns, 60);
	assert_int_equal(sites[0].min_alloc_bytes, 40);
	assert_int_equal(sites[0].max_alloc_bytes, 100);
	assert_int_equal(sites[0].windows[0].max_bytes, 270);
	assert_int_equal(sites[0].windows[0].last_bytes, 270);
}

/* Memory that is not owned looks at the level's peak and has no part in it. */
static void not_owned(void **unused)
{
	const struct gm_counters imported = {&sites[1], &level, &usage, false};

	(void)unused;
	add(0, 100, 1);
	gm_count_alloc(&imported, 5000, 2, 20);
	gm_count_resize(&imported, 1000, 30);
	assert_int_equal(level.current_bytes, 100);
	assert_int_equal(level.peak_bytes, 100);
	assert_int_equal(sites[1].level_max_bytes, 0);
	assert_int_equal(sites[1].bytes_at_peak, 0); /* before it came the level was at its peak */
	assert_int_equal(usage.current_bytes, 6100);
	gm_count_free(&imported, 6000, 1, false);
	assert_int_equal(level.current_bytes, 100);
	assert_int_equal(usage.current_bytes, 100);
}

/* The site has changed in windows 0 and 1 of 4; the file merged once, and is in window 5 now. */
static void windows(void **unused)
{
	(void)unused;
	add(0, 100, 1);
	take(0, 100);
	gm_site_follow_windows(&sites[0], 1, 0, 0);
	add(0, 30, 2);
	gm_site_follow_windows(&sites[0], 5, 1, 0);
	assert_int_equal(sites[0].window_current, 5);
	assert_int_equal(sites[0].windows[0].max_bytes, 100);
	assert_int_equal(sites[0].windows[0].last_bytes, 30);
	for (unsigned i = 1; i <= 5; i++) {
		assert_int_equal(sites[0].windows[i].min_bytes, 30);
		assert_int_equal(sites[0].windows[i].max_bytes, 30);
	}
	take(0, 30);
	gm_site_follow_windows(&sites[0], 2, 0, 1); /* the first mark */
	assert_int_equal(sites[0].windows[0].min_bytes, 0);
	assert_int_equal(sites[0].windows[0].max_bytes, 100);
	assert_int_equal(sites[0].windows[2].max_bytes, 0);
	assert_int_equal(sites[0].window_merges, 0);
}

/* What is live is counted again; the totals of before stay where they fit. */
static void counted_again(void **unused)
{
	const struct gm_counters in = {&sites[0], &level, &usage, true};
	const struct gm_alloc_record allocs[] = {{.bytes = 100},
						 {.bytes = 40, .flags = GM_ALLOC_BEFORE_MARK}};

	(void)unused;
	add(0, 100, 1);
	add(0, 60, 2);
	take(0, 60);
	sites[0].live_bytes = level.current_count = usage.current_bytes = 1234;
	gm_recount_begin(&in);
	for (unsigned i = 0; i < 2; i++)
		gm_recount_add(&in, &allocs[i]);
	gm_recount_end(&in);
	assert_int_equal(sites[0].live_bytes, 140);
	assert_int_equal(sites[0].live_count, 2);
	assert_int_equal(sites[0].stray_bytes, 40);
	assert_int_equal(sites[0].allocated_bytes, 200);
	assert_int_equal(sites[0].freed_bytes, 60);
	assert_int_equal(sites[0].frees, 1);
	assert_int_equal(level.current_count, 2);
	assert_int_equal(level.allocations, 3);
	assert_int_equal(level.peak_bytes, 160);
	assert_int_equal(usage.current_bytes, 140);
	assert_int_equal(sites[0].windows[0].last_bytes, 140);
}

/* Two small requests in one slab, one in the next, 3 MiB in pages; what lies in a pool is not
 * counted. */
static void what_the_driver_holds(void **unused)
{
	const uint64_t mib = 1 << 20;
	struct gm_alloc_record allocs[] = {
		{.key = 2 * mib, .bytes = 100, .kind = GM_KIND_DEVICE, .owner = GM_NONE},
		{.key = 3 * mib, .bytes = mib, .kind = GM_KIND_DEVICE, .owner = GM_NONE},
		{.key = 4 * mib, .bytes = 512, .kind = GM_KIND_DEVICE, .owner = GM_NONE},
		{.key = 8 * mib,
		 .bytes = 3 * mib,
		 .kind = GM_KIND_DEVICE,
		 .owner = GM_NONE,
		 .physical_bytes = 4 * mib},
		{.key = 20 * mib,
		 .bytes = mib,
		 .kind = GM_KIND_ASYNC,
		 .owner = 0,
		 .physical_bytes = mib},
		{.key = 24 * mib, .bytes = mib, .kind = GM_KIND_IMPORTED, .owner = GM_NONE},
	};
	struct gm_physical_sum sum = {0};

	(void)unused;
	for (unsigned i = 0; i < sizeof(allocs) / sizeof(*allocs); i++)
		gm_physical_sum_add(&sum, &allocs[i]);
	assert_int_equal(sum.bytes, 8 * mib);
}

static enum gm_torch_part part(unsigned flags, unsigned space, unsigned kind, unsigned of_level)
{
	const struct gm_alloc_record alloc = {.flags = (uint16_t)flags,
					      .space = (uint8_t)space,
					      .kind = (uint8_t)kind,
					      .level = (uint8_t)of_level,
					      .bytes = 512};

	return gm_torch_part(&alloc);
}

static void parts_of_pytorch(void **unused)
{
	(void)unused;
	assert_int_equal(part(GM_ALLOC_TORCH, GM_SPACE_POINTER, GM_KIND_DEVICE, 0),
			 GM_TORCH_SEGMENT);
	assert_int_equal(part(GM_ALLOC_TORCH, GM_SPACE_MAPPING, GM_KIND_NONE, 0), GM_TORCH_SEGMENT);
	assert_int_equal(part(0, GM_SPACE_MAPPING, GM_KIND_NONE, 0), GM_TORCH_NO_PART); /* NCCL's */
	assert_int_equal(part(GM_ALLOC_TORCH, GM_SPACE_HANDLE, GM_KIND_VMM, 0), GM_TORCH_NO_PART);
	assert_int_equal(part(GM_ALLOC_TORCH, GM_SPACE_POINTER, GM_KIND_ASYNC, 0), GM_TORCH_TENSOR);
	assert_int_equal(part(GM_ALLOC_PLUGGABLE, GM_SPACE_POINTER, GM_KIND_DEVICE, 0),
			 GM_TORCH_FOREIGN);
	assert_int_equal(part(0, GM_SPACE_TORCH, GM_KIND_DEVICE, GM_LEVEL_TORCH), GM_TORCH_BLOCK);
	assert_int_equal(part(0, GM_SPACE_CUSTOM, GM_KIND_DEVICE, GM_LEVEL_CUSTOM),
			 GM_TORCH_NO_PART);
}

/* 20 reserved, given back, 12 taken again: one round. More is freed than ours says is there. */
static void record_of_pytorch(void **unused)
{
	struct gm_torch_record torch = {0};

	(void)unused;
	gm_torch_segment_add(&torch, 20);
	gm_torch_segment_remove(&torch, 20);
	torch.releasing = 1;
	gm_torch_segment_add(&torch, 12);
	gm_torch_block_add(&torch, 8);
	gm_torch_block_remove(&torch, 9);
	assert_int_equal(torch.reserved_bytes, 12);
	assert_int_equal(torch.reserved_peak_bytes, 20);
	assert_int_equal(torch.reserved_total_bytes, 32);
	assert_int_equal(torch.released_total_bytes, 20);
	assert_int_equal(torch.rounds, 1);
	assert_int_equal(torch.allocated_bytes, 0);
	assert_int_equal(torch.allocations - torch.frees, 0);
}

/* Points of 100 ns: 5 from 50 on, 9 at 260, 2 at 270; what is later than the last point belongs to
 * it. */
static void series(void **unused)
{
	static struct gm_timeline_record line;

	(void)unused;
	line.width_ns = 100;
	gm_series_put(&line, 50, 5);
	gm_series_put(&line, 260, 9);
	gm_series_put(&line, 270, 2);
	assert_int_equal(line.points, 3);
	assert_int_equal(line.min_bytes[0], 0);
	assert_int_equal(line.max_bytes[0], 5);
	assert_int_equal(line.min_bytes[1], 5);
	assert_int_equal(line.max_bytes[1], 5);
	assert_int_equal(line.min_bytes[2], 2);
	assert_int_equal(line.max_bytes[2], 9);
	assert_int_equal(line.last_bytes[2], 2);
	gm_series_put(&line, 1000000, 3);
	assert_int_equal(line.points, GM_TIMELINE_POINTS);
	assert_int_equal(line.last_bytes[GM_TIMELINE_POINTS - 1], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_last_moment_at_the_peak, begin),
		cmocka_unit_test_setup(a_site, begin),
		cmocka_unit_test_setup(not_owned, begin),
		cmocka_unit_test_setup(windows, begin),
		cmocka_unit_test_setup(counted_again, begin),
		cmocka_unit_test(what_the_driver_holds),
		cmocka_unit_test(parts_of_pytorch),
		cmocka_unit_test(record_of_pytorch),
		cmocka_unit_test(series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
