/*
 * The start and the end of the tracker.
 */
#include "track/track.h"
#include "track/clock.h"
#include "track/contexts.h"
#include "track/costs.h"
#include "track/event_log.h"
#include "track/freed.h"
#include "track/functions.h"
#include "track/graphs.h"
#include "track/holds.h"
#include "track/in_use.h"
#include "track/ledger.h"
#include "track/levels.h"
#include "track/live.h"
#include "track/ooms.h"
#include "track/peaks.h"
#include "track/pools.h"
#include "track/recording.h"
#include "track/retries.h"
#include "track/sites.h"
#include "track/slabs.h"
#include "track/thread_id.h"
#include "track/timeline.h"
#include "track/torch_memory.h"
#include "track/update.h"
#include "track/windows.h"

void gm_track_start(bool history)
{
	gm_thread_id = 0; /* after a raw clone it is the parent's */
	gm_state_reset();
	gm_levels_reset();
	gm_functions_reset();
	gm_live_reset();
	gm_slabs_reset();
	gm_sites_reset();
	gm_freed_reset();
	gm_torch_reset();
	gm_retries_reset();
	gm_ooms_reset();
	gm_ledger_reset();
	gm_pools_reset();
	gm_graphs_reset();
	gm_contexts_reset();
	gm_costs_reset();
	gm_holds_reset();
	gm_in_use_reset();
	gm_peaks_reset();
	gm_file->started_monotonic_ns = gm_monotonic_ns();
	gm_clock_start(gm_file->started_monotonic_ns);
	gm_timeline_reset();
	gm_windows_start();
	gm_event_log_start(history);
}

void gm_track_end(unsigned end, int status)
{
	bool locked;

	if (!gm_file)
		return;
	/* A thread that exec or another thread's _exit killed may hold the lock for ever. */
	locked = gm_track_try_lock();
	gm_update_own_bytes();
	gm_file->ended_ns = gm_track_now();
	gm_file->exit_status = status;
	__atomic_store_n(&gm_file->end, end, __ATOMIC_RELEASE);
	if (locked)
		gm_track_unlock();
}

void gm_track_resume(void)
{
	if (!gm_file)
		return;
	gm_file->ended_ns = 0;
	__atomic_store_n(&gm_file->end, GM_END_NONE, __ATOMIC_RELEASE);
}
