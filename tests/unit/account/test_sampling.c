/*
 * Sampling by bytes: its probabilities against the library of mathematics, and its estimates
 * against sums over all allocations. The seeds are fixed, so that each run is the same.
 */
#include "account/counters.h"
#include "account/sampling.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MEAN 1000000ull

static void weights(void **state)
{
	uint64_t bytes;

	(void)state;
	for (bytes = 1; bytes < 1ull << 40; bytes += bytes / 3 + 1) {
		double wanted = 1 / -expm1(-(double)bytes / (double)MEAN);

		assert_true(fabs(gm_sample_weight(bytes, MEAN) / wanted - 1) < 1e-12);
	}
	assert_true(gm_sample_weight(100 * MEAN, MEAN) == 1);
}

/* Quantiles of the distances: the distribution function at each distance is uniform. */
static void distances(void **state)
{
	enum { DRAWS = 200000, PARTS = 20 };
	uint64_t random = 1;
	int parts[PARTS] = {0}, i;
	double sum = 0;

	(void)state;
	for (i = 0; i < DRAWS; i++) {
		double distance = (double)gm_sample_distance(MEAN, &random);

		sum += distance;
		parts[(int)(PARTS * -expm1(-distance / (double)MEAN))]++;
	}
	assert_true(fabs(sum / DRAWS / (double)MEAN - 1) < 4 / sqrt(DRAWS));
	for (i = 0; i < PARTS; i++)
		assert_true(abs(parts[i] - DRAWS / PARTS) < 5 * sqrt((double)DRAWS / PARTS));
}

/* The sampler as the recorder has it (recorder/state/sampler.h). */
static int32_t sample(uint64_t bytes, int64_t *left, uint64_t *random)
{
	*left -= (int64_t)bytes;
	if (*left > 0)
		return -1;
	*left = gm_sample_distance(MEAN, random);
	return gm_sample_extra(bytes, MEAN, random);
}

/* One run of many allocations of a site. Returns its record. */
static struct gm_site_record run(const uint64_t *bytes, unsigned count, uint64_t seed)
{
	struct gm_site_record site = {0};
	struct gm_counters in = {.site = &site};
	int64_t left = gm_sample_distance(MEAN, &seed);
	unsigned i;

	gm_site_begin(&site, 0);
	for (i = 0; i < count; i++) {
		in.extra = sample(bytes[i], &left, &seed);
		gm_count_alloc(&in, bytes[i], i + 1, i);
	}
	return site;
}

/* Over many runs the mean of the estimates is the sum, and their spread is the stated error. */
static void estimates(const uint64_t *bytes, unsigned count, bool exact_error)
{
	enum { RUNS = 400 };
	double sum = 0, mean = 0, squares = 0, calls = 0, spread, stated;
	uint64_t least = UINT64_MAX;
	unsigned i;

	for (i = 0; i < count; i++) {
		sum += (double)bytes[i];
		least = bytes[i] < least ? bytes[i] : least;
	}
	for (i = 0; i < RUNS; i++) {
		struct gm_site_record site = run(bytes, count, 1000 + i);
		double off = (double)site.live_bytes - sum;

		mean += off / RUNS;
		squares += off * off / RUNS;
		calls += (double)site.live_count / RUNS;
	}
	spread = sqrt(squares);
	stated = (double)gm_sample_error((uint64_t)sum, least, MEAN);
	assert_true(fabs(mean) < 4 * spread / sqrt(RUNS) + 1e-9);
	assert_true(fabs(calls - count) < 0.1 * count);
	assert_true(spread < 1.2 * stated + 1);
	if (exact_error)
		assert_true(spread > 0.8 * stated - 1);
}

static void sums(void **state)
{
	static uint64_t bytes[4000];
	uint64_t random = 7;
	unsigned i;

	(void)state;
	for (i = 0; i < 4000; i++)
		bytes[i] = 512;
	estimates(bytes, 4000, false); /* the rounded weights are few here: its error is larger */
	for (i = 0; i < 4000; i++)
		bytes[i] = MEAN / 20;
	estimates(bytes, 4000, true);
	for (i = 0; i < 4000; i++)
		bytes[i] = MEAN / 2;
	estimates(bytes, 4000, true);
	for (i = 0; i < 4000; i++)
		bytes[i] = 60 * MEAN;
	estimates(bytes, 4000, true);
	for (i = 0; i < 4000; i++)
		bytes[i] = 1 + gm_random(&random) % (3 * MEAN);
	estimates(bytes, 4000, false);
}

/* What was counted is taken back whole, also from the wholes, which count each allocation once. */
static void frees(void **state)
{
	struct gm_site_record site = {0}, nothing = {0};
	struct gm_level_record level = {0};
	struct gm_counters in = {.site = &site, .level = &level, .in_level = true, .extra = 6};

	(void)state;
	gm_site_begin(&site, 0);
	gm_count_alloc(&in, 100, 1, 0);
	assert_int_equal(site.live_bytes, 700);
	assert_int_equal(site.live_count, 7);
	assert_int_equal(site.max_alloc_bytes, 100);
	assert_int_equal(level.current_bytes, 100);
	assert_int_equal(level.current_count, 1);
	gm_count_free(&in, 100, 1, false);
	assert_int_equal(site.live_bytes, 0);
	assert_int_equal(site.frees, 7);
	assert_int_equal(level.current_bytes, 0);

	in.site = &nothing;
	in.extra = -1;
	gm_count_alloc(&in, 100, 2, 0);
	assert_int_equal(nothing.allocations, 0);
	assert_int_equal(level.current_bytes, 100);
	gm_count_free(&in, 100, 1, false);
	assert_int_equal(nothing.frees, 0);
	assert_int_equal(level.current_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights), cmocka_unit_test(distances), cmocka_unit_test(sums),
		cmocka_unit_test(frees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
