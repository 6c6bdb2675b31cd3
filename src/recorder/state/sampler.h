/*
 * The choice of the allocations that are sampled (GPUMEMTRACE_SAMPLE). Each thread has points of
 * its own on the bytes that it allocates (account/sampling.h), so no thread waits for another. A
 * device whose blocks are counted without a lock (track/block_counts.h) has points for these.
 */
#ifndef GM_RECORDER_SAMPLER_H
#define GM_RECORDER_SAMPLER_H

#include "recorder/state/thread.h"

/* The mean distance of the points in bytes; 0: every allocation is recorded in full. */
extern uint64_t gm_sample_bytes __attribute__((visibility("hidden")));

/*
 * Begins to sample, or not if `mean_bytes` is 0. Called before the first event of a file and when a
 * period begins, with the start lock held. Points are drawn anew.
 */
void gm_sampling_start(uint64_t mean_bytes, uint64_t seed);

/* The slow path of gm_sample_by: the next point was reached, or there is none yet. */
int32_t gm_sample_point(struct gm_sample_points *points, int64_t bytes);

/*
 * Returns whether an allocation ends before the next point and is not sampled, and counts its bytes
 * then.
 */
static inline bool gm_passes_sample(struct gm_sample_points *points, int64_t bytes)
{
	if (__builtin_expect(points->left <= bytes, 0))
		return false;
	points->left -= bytes;
	return true;
}

/*
 * Returns `extra` of the allocation's record (struct gm_alloc_record): -1 if it is not sampled. To
 * be called once for each allocation.
 */
static inline int32_t gm_sample_by(struct gm_sample_points *points, uint64_t bytes)
{
	return gm_passes_sample(points, (int64_t)bytes) ? -1
							: gm_sample_point(points, (int64_t)bytes);
}

/* The same by the points of the calling thread, which makes the allocation; 0 without sampling. */
static inline int32_t gm_sample(uint64_t bytes)
{
	return __builtin_expect(!gm_sample_bytes, 1) ? 0 : gm_sample_by(&gm_thread.points, bytes);
}

#endif
