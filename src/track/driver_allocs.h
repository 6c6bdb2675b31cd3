/*
 * Allocations and frees at the driver's level, as calls report them.
 */
#ifndef GM_TRACK_DRIVER_ALLOCS_H
#define GM_TRACK_DRIVER_ALLOCS_H

#include "track/event.h"
#include "track/freed.h"
#include "track/state.h"

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
 * To be called before a free call: returns the serial number of the latest allocation, for
 * gm_track_free_end. Another thread may be given the address before the call returns; its
 * allocation then has a higher number. Prefetches what the end of the allocation will change. Any
 * thread, without the lock.
 */
static inline uint64_t gm_track_free_begin(uint8_t space, uint64_t key)
{
	if (!gm_file)
		return 0;
	gm_index_prefetch(&gm_track.live, space, key);
	gm_freed_prefetch(space, key);
	return __atomic_load_n(&gm_file->serial, __ATOMIC_RELAXED);
}

/*
 * To be called after the free call. On success the allocation of this key ends, unless its serial
 * number is above `latest`: it is then another one. If the call was an error of contract.md, that
 * is recorded. The event has key, space, kind (the family of the free call), stack (shallow),
 * function and error. Returns the index of the pool that should be queried now, or GM_NONE.
 */
uint32_t gm_track_free_end(uint64_t latest, const struct gm_event *event);

#endif
