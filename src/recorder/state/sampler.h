/*
 * The choice of the allocations that are sampled (GPUMEMTRACE_SAMPLE). Each thread has points of
 * its own on the bytes that it allocates (account/sampling.h), so no thread waits for another.
 */
#ifndef GM_RECORDER_SAMPLER_H
#define GM_RECORDER_SAMPLER_H

#include "recorder/state/thread.h"

/* The mean distance of the points in bytes; 0: every allocation is recorded in full. */
extern uint64_t gm_sample_bytes __attribute__((visibility("hidden")));

/*
 * Begins to sample, or not if `mean_bytes` is 0. Called before the first event of a file and when a
 * period begins, with the start lock held. Threads that run draw their points anew.
 */
void gm_sampling_start(uint64_t mean_bytes, uint64_t seed);

/* The slow path of gm_sample: the thread has reached its next point, or has none yet. */
int32_t gm_sample_point(uint64_t bytes);

/*
 * Returns `extra` of the allocation's record (struct gm_alloc_record): -1 if it is not sampled. To
 * be called once for each allocation, by the thread that makes it.
 */
static inline int32_t gm_sample(uint64_t bytes)
{
	if (__builtin_expect(!gm_sample_bytes, 1))
		return 0;
	gm_thread.sample_left -= (int64_t)bytes;
	return __builtin_expect(gm_thread.sample_left > 0, 1) ? -1 : gm_sample_point(bytes);
}

/*
 * gm_sample for a caller that has little to do for an allocation that is not sampled: if the thread
 * does not reach its next point with it, gm_pass_sample does what there is to do.
 */
static inline bool gm_may_pass_sample(int64_t bytes)
{
	return gm_thread.sample_left > bytes;
}

static inline void gm_pass_sample(int64_t bytes)
{
	gm_thread.sample_left -= bytes;
}

#endif
