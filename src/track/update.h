/*
 * An update of the tables. Each event is one update: it takes the tracker's lock, sets the time of
 * the event, changes the tables, and releases the lock.
 *
 * SEQLOCK. Counters that belong together are changed within a seqlock, so that a reader of the file
 * can tell whether it saw them in the middle of a change: `sequence` in the file's header is raised
 * before the first change, to an odd number, and after the last one. A reader of a running process
 * reads again if the number was odd or has changed. A reader of a killed process's file that finds
 * it odd recomputes the counters from the live records, each of which changes by one store of its
 * state. The two fences of this file are the whole protocol on the writer's side: no change becomes
 * visible before the odd number, and the even number does not before all changes.
 *
 * For track/.
 */
#ifndef GM_TRACK_UPDATE_H
#define GM_TRACK_UPDATE_H

#include "track/clock.h"
#include "track/event.h"
#include "track/state.h"

/* After so many events an update takes the steps of gm_update_seldom. */
#define GM_SELDOM_INTERVAL 64u

/* Counts the tracker's private memory in the file. */
void gm_update_own_bytes(void);

/* At the end of an update: counts the private memory, and writes checkpoints of the history. */
void gm_update_seldom(void);

/* Begins an update. Invalidates all cached counters. */
void gm_update_begin(void);

/* Begins an update if the lock is free, and returns whether it did. Safe in signal handlers. */
bool gm_update_try_begin(void);
void gm_update_end(void);

/* Ends the changes for the moment, without releasing the lock; and goes on with them. */
void gm_update_pause(void);
void gm_update_resume(void);

static inline void gm_seqlock_begin(void)
{
	__atomic_store_n(&gm_file->sequence, gm_file->sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void gm_seqlock_end(void)
{
	__atomic_store_n(&gm_file->sequence, gm_file->sequence + 1, __ATOMIC_RELEASE);
}

/*
 * For the fast paths: what gm_update_begin does after it has taken the lock and invalidated the
 * cached counters. Time does not go back: `now_ns` may lie a little before the last event's.
 */
static inline void gm_update_begin_locked(uint64_t now_ns)
{
	if (__builtin_expect(now_ns > gm_track.now_ns, 1))
		gm_track.now_ns = now_ns;
	gm_seqlock_begin();
}

/* For the fast paths: gm_update_end. */
static inline void gm_update_end_inline(void)
{
	if (__builtin_expect(gm_file->events % GM_SELDOM_INTERVAL == 1, 0))
		gm_update_seldom();
	gm_file->last_event_ns = gm_track.now_ns;
	gm_seqlock_end();
	gm_track_unlock();
}

#endif
