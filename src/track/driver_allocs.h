/*
 * Allocations and frees at the driver's level, as calls report them.
 */
#ifndef GM_TRACK_DRIVER_ALLOCS_H
#define GM_TRACK_DRIVER_ALLOCS_H

#include "track/event.h"

/*
 * An allocation succeeded. An older live record of the same key is ended: its free was missed.
 * Returns whether the pool that it was taken from (event->owner) should be queried now.
 */
bool gm_track_alloc(const struct gm_event *event);

/* An allocation call failed with event->error. `key` is 0, `bytes` what was asked for. */
void gm_track_alloc_failed(const struct gm_event *event);

/*
 * A call that allocates nothing by name failed for want of memory: a launch, a stream, a context.
 */
void gm_track_refused(const struct gm_event *event);

/*
 * To be called before a free call: marks the record as being freed, because another thread may be
 * given the address before the call returns. Allocates nothing.
 */
struct gm_ticket gm_track_free_begin(uint8_t space, uint64_t key);

/*
 * To be called after the free call. On success the allocation ends, unless another thread was given
 * its address meanwhile. On failure it is live again, and if the call was an error of contract.md
 * that is recorded. The event has key, space, kind (the family of the free call), stack (shallow),
 * function and error. Returns whether the pool ticket.owner should be queried now.
 */
bool gm_track_free_end(struct gm_ticket ticket, const struct gm_event *event);

#endif
