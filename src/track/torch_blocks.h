/*
 * The blocks of PyTorch's caching allocator, as its hooks report them. PyTorch calls with its
 * allocator's lock held: these functions wait for nothing but the tracker's lock.
 */
#ifndef GM_TRACK_TORCH_BLOCKS_H
#define GM_TRACK_TORCH_BLOCKS_H

#include "track/event.h"

/* The device of a block, and which thread (gm_calling_thread) reported it when (gm_clock_ticks). */
struct gm_where {
	int32_t device;
	uint32_t thread;
	uint64_t ticks;
};

/*
 * PyTorch is about to report a block that it handed out: prefetches what will be recorded of it,
 * probably with this stack (GM_NONE: not known), while the stack is taken. Changes nothing.
 */
void gm_track_block_prefetch(uint64_t block, int device, uint32_t stack);

/* PyTorch handed out a block at that address. Ends the thread's chain of retries. Keeps errno. */
void gm_track_block(uint64_t block, uint64_t bytes, struct gm_where where, struct gm_origin origin,
		    struct gm_torch_totals totals);

/* A block was given back to PyTorch. Keeps errno. */
void gm_track_block_free(uint64_t block, struct gm_where where, struct gm_torch_totals totals);

/*
 * In a sampled recording: PyTorch handed out a block that is sampled; one that is not, which counts
 * in the totals alone; and a block of so many bytes was given back, whether it was sampled or not.
 * Most events of the second and third kind need no lock and are counted by gm_count_block instead.
 * Keep errno.
 */
void gm_track_sampled_block(uint64_t block, uint64_t bytes, struct gm_where where,
			    struct gm_origin origin, struct gm_torch_totals totals);
void gm_track_unsampled_block(uint64_t bytes, struct gm_where where, struct gm_torch_totals totals);
void gm_track_sampled_block_free(uint64_t block, uint64_t bytes, struct gm_where where,
				 struct gm_torch_totals totals);

#endif
