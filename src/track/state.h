/*
 * The state that all files of track/ share: the lock, the time of the present event, and which
 * cached counters are valid.
 */
#ifndef GM_TRACK_STATE_H
#define GM_TRACK_STATE_H

#include "stack/arena.h"
#include "store/lock.h"
#include "store/writer.h"
#include "track/index.h"

#include <stddef.h>

/* The place in the ring of events (event_log.h). */
struct gm_event_ring {
	struct gm_event_record
		*next; /* the record to use (atomic: read without the lock for a prefetch) */
	uint32_t left; /* number of records that follow in memory, `next` included */
	bool on;
};

/*
 * `lock` guards everything in track/ and the counters of the file. It is held for one short update
 * of the tables: no stack is taken, no CUDA function is called and nothing is waited for under it.
 * Only the functions below use it.
 *
 * CACHE LINES. When threads record in turn, each line that an event changes moves to the other
 * processor, which takes longer than the event itself; a line that events only read does not move.
 * So the members that every event changes are one line, and the others are another.
 *
 * CACHED COUNTERS. The fast paths of torch_blocks.c and driver_allocs.c do not look up the records
 * that an event changes: they are found once and then remembered in one cache line for a device
 * (and kind). An entry is filled when an event misses it, and is valid while its bit is set in
 * `cached_blocks` or `cached_allocs`. Any event that could change what an entry says invalidates
 * it.
 *
 * While entries of blocks are valid, some figures of the file are left behind (see torch_blocks.c).
 * `settle_blocks` brings them up to date and invalidates the entries.
 */
struct gm_track {
	struct gm_lock lock;
	uint64_t now_ns; /* the time of the present event */
	struct gm_event_ring ring;
	struct gm_index live; /* of the live table (live.h) */

	__attribute__((aligned(64))) /* events read these, and few change them */
	uint8_t window[4];	/* current, merges and resets as in the header; see windows.h */
	uint32_t cached_allocs; /* bit i: entry i of driver_allocs.c is valid */
	uint32_t captures;	/* under way, see capture_pools.h */
	uint64_t window_end; /* with so many frees the next window begins; UINT64_MAX: at a mark */
	uint64_t cached_blocks; /* bit i: the entry of device slot i of torch_blocks.c is valid */
	void (*settle_blocks)(void); /* set while cached_blocks is not 0 */
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct gm_track, window) == 64, "what every event changes is one line");
_Static_assert(sizeof(struct gm_track) == 128, "what few change is another");

extern struct gm_track gm_track __attribute__((visibility("hidden")));

/* The tracker's private memory, which a reset frees as a whole. */
extern struct gm_arena gm_track_arena __attribute__((visibility("hidden")));

/* Forgets everything: a file was opened. */
void gm_state_reset(void);

/* Waits for the lock. Not for signal handlers. */
static inline void gm_track_lock(void)
{
	gm_lock_acquire(&gm_track.lock);
}

/* Takes the lock if it is free, and returns whether it did. Safe in signal handlers. */
static inline bool gm_track_try_lock(void)
{
	return gm_lock_try(&gm_track.lock);
}

static inline void gm_track_unlock(void)
{
	gm_lock_release(&gm_track.lock);
}

/* Brings all figures of PyTorch's blocks up to date. Under the lock. */
static inline void gm_settle_blocks(void)
{
	if (__builtin_expect(gm_track.cached_blocks != 0, 0))
		gm_track.settle_blocks();
}

/* Invalidates all cached counters, before anything changes that they may say. Under the lock. */
static inline void gm_invalidate_cached_counters(void)
{
	gm_settle_blocks();
	gm_track.cached_allocs = 0;
}

#endif
