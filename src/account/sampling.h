/*
 * Sampling by bytes (GPUMEMTRACE_SAMPLE). Points lie on the bytes that a thread allocates, at
 * distances that are exponentially distributed with a given mean. An allocation with a point in it
 * is sampled. An allocation of `bytes` is so with the probability p = 1 - exp(-bytes / mean), and
 * counts in the figures of its site as 1/p allocations like it. Therefore each such figure has the
 * expected value that a full recording would have. 1/p less 1 is kept in a byte: it is rounded at
 * random to one of the two numbers next to it that have a code, in proportion to the distance,
 * which leaves the expected value as it is. The codes have four numbers for each doubling.
 *
 * Pure functions but for the state that the caller passes. They need no library of mathematics,
 * take no lock and are safe in signal handlers.
 */
#ifndef GM_ACCOUNT_SAMPLING_H
#define GM_ACCOUNT_SAMPLING_H

#include "store/layout.h"

#define GM_MOST_SAMPLE_BYTES (1ull << 30) /* mean distance; a site's weight fits in 31 bits */

/* Returns the next of a sequence of random numbers and changes the state, which may be any. */
uint64_t gm_random(uint64_t *state);

/* Returns a distance to the next point, in bytes, at least 1. */
int64_t gm_sample_distance(uint64_t mean_bytes, uint64_t *state);

/* Returns 1/p of an allocation of so many bytes, which are not 0. */
double gm_sample_weight(uint64_t bytes, uint64_t mean_bytes);

/* Returns the number of a code: 0 to 3 stand for themselves; then come 4, 5, 6, 7, 8, 10, 12... */
static inline uint64_t gm_sample_number(int code)
{
	return code < 4 ? (uint64_t)code : (uint64_t)(4 + (code & 3)) << ((code >> 2) - 1);
}

/*
 * Returns how often an allocation counts in its site's figures, by `extra` of its record: not at
 * all where that is -1, else once and as often as the code says.
 */
static inline uint64_t gm_copies(int extra)
{
	if (__builtin_expect(!extra, 1))
		return 1;
	return extra < 0 ? 0 : 1 + gm_sample_number(extra);
}

/* Returns `extra` of the record of an allocation that is sampled: the code of 1/p less 1. */
int32_t gm_sample_extra(uint64_t bytes, uint64_t mean_bytes, uint64_t *state);

/*
 * Returns an upper bound of the standard error of an estimate of bytes that is made of allocations
 * of at least `least_bytes` each. An allocation of b bytes that is counted adds b * b * c * (c - 1)
 * to the variance, where c is the rounded 1/p. That is b * (1/p - 1) for each byte of the estimate,
 * and the smaller b, the more. What the rounding adds is less than one hundredth.
 */
uint64_t gm_sample_error(uint64_t estimate_bytes, uint64_t least_bytes, uint64_t mean_bytes);

#endif
