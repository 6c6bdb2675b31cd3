/*
 * Chains of retries (contract.md, section 6): an allocation call that fails for want of memory
 * opens a chain on its thread, and what happens next on the thread decides what the chain was.
 */
#ifndef GM_TRACK_RETRIES_H
#define GM_TRACK_RETRIES_H

#include "track/event.h"

/*
 * PyTorch reported that it is out of memory. The event has the bytes asked for, device, stack and
 * view. If no call of CUDA's failed before it on this thread, PyTorch's own limit was reached.
 */
void gm_track_torch_oom(const struct gm_event *event, const struct gm_torch_totals *totals);

/* PyTorch was configured with this max_split_size. Any thread, without the lock. */
void gm_track_torch_max_split(uint64_t bytes);

/* ---- for track/, under the lock ---- */

/* Threads that have an open chain. */
extern unsigned gm_open_chains __attribute__((visibility("hidden")));

void gm_retries_reset(void);

/* An allocation call failed for want of memory; `site` is its site's index. */
void gm_retry_out_of_memory(const struct gm_event *event, uint32_t site);

/* An allocation call succeeded. */
void gm_retry_succeeded(const struct gm_event *event);

/* An allocation call failed for another reason. */
void gm_retry_failed_otherwise(void);

/* PyTorch handed out a block on this thread. */
void gm_retry_block_allocated(void);

/* The slow path of gm_retry_freed. */
void gm_retry_count_flushed(const struct gm_alloc_record *alloc);

/* Driver memory, an allocation or a mapping, is freed on this thread: in a chain it was flushed. */
static inline void gm_retry_freed(const struct gm_alloc_record *alloc)
{
	if (__builtin_expect(gm_open_chains != 0, 0))
		gm_retry_count_flushed(alloc);
}

#endif
