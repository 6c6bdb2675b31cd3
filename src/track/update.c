/*
 * An update of the tables.
 */
#include "track/update.h"
#include "stack/intern.h"
#include "store/journal.h"
#include "track/checkpoint.h"

void gm_update_own_bytes(void)
{
	gm_file->own_bytes = gm_arena_bytes(&gm_track_arena) + gm_intern_bytes();
}

void gm_update_seldom(void)
{
	gm_update_own_bytes();
	if (gm_journal_on)
		gm_checkpoint_step();
}

static void begin_locked(void)
{
	gm_invalidate_cached_counters();
	gm_update_begin_locked(gm_clock_ns(&gm_clock));
}

void gm_update_begin(void)
{
	gm_track_lock();
	begin_locked();
}

bool gm_update_try_begin(void)
{
	if (!gm_track_try_lock())
		return false;
	begin_locked();
	return true;
}

void gm_update_end(void)
{
	gm_update_end_inline();
}

void gm_update_pause(void)
{
	gm_file->last_event_ns = gm_track.now_ns;
	gm_seqlock_end();
}

void gm_update_resume(void)
{
	gm_seqlock_begin();
}
