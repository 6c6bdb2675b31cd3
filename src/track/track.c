/*
 * The start and the end of the tracker.
 */
#include "track/track.h"
#include "store/journal.h"
#include "track/allocs.h"
#include "track/before.h"
#include "track/block_counts.h"
#include "track/clock.h"
#include "track/contexts.h"
#include "track/capture_pools.h"
#include "track/checkpoint.h"
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
#include "track/named_ranges.h"
#include "track/recording.h"
#include "track/retries.h"
#include "track/sites.h"
#include "track/slabs.h"
#include "track/thread_id.h"
#include "track/timeline.h"
#include "track/torch_memory.h"
#include "track/torch_trace.h"
#include "track/update.h"
#include "track/windows.h"

#include <string.h>

/* Forgets all that hangs on the tables which gm_track_period_begin empties. */
static void forget_records(bool history)
{
	gm_levels_reset();
	gm_live_reset();
	gm_allocs_reset();
	gm_slabs_reset();
	gm_sites_reset();
	gm_freed_reset();
	gm_torch_reset();
	gm_blocks_reset();
	gm_torch_trace_reset();
	gm_retries_reset();
	gm_ooms_reset();
	gm_ledger_reset();
	gm_pools_reset();
	gm_graphs_reset();
	gm_costs_reset();
	gm_capture_pools_reset();
	gm_holds_reset();
	gm_in_use_reset();
	gm_peaks_reset();
	gm_timeline_reset();
	gm_ranges_reset();
	gm_before_reset();
	gm_checkpoint_reset();
	gm_windows_start();
	gm_event_log_start(history);
}

void gm_track_start(bool history)
{
	gm_thread.id = 0; /* after a raw clone it is the parent's */
	gm_state_reset();
	gm_functions_reset();
	gm_contexts_reset();
	gm_file->started_monotonic_ns = gm_monotonic_ns();
	gm_clock_start(gm_file->started_monotonic_ns);
	forget_records(history);
}

/* ---- periods ---- */

/*
 * True for tables that outlive a period: names for events that threads may be about to record,
 * devices, contexts.
 */
static bool outlives(enum gm_table_id table)
{
	switch (table) {
	case GM_TABLE_STRINGS:
	case GM_TABLE_MODULES:
	case GM_TABLE_FRAMES:
	case GM_TABLE_STACK_FRAMES:
	case GM_TABLE_STACKS:
	case GM_TABLE_FUNCTIONS:
	case GM_TABLE_DEVICES:
	case GM_TABLE_CONTEXTS:
		return true;
	default:
		return false;
	}
}

/* `serial` goes on: it tells a ticket from before the period from one of a record in use now. */
static void clear_header(struct gm_header *header)
{
	header->events = header->event_head = header->first_mark_serial = header->freed = 0;
	header->emptied = header->emptied_at_work = 0;
	header->worked = 0;
	header->launched = 0;
	header->dropped_records = header->unknown_frees = header->lost_stacks = 0;
	header->dropped_tables = 0;
	header->overhead_ns = header->teardown_frees = header->oom_events = 0;
	header->passed_calls = 0;
	header->window_current = header->window_merges = header->window_marks = 0;
	header->window_resets = header->window_filled = header->marks_dropped = 0;
	memset(header->window_start_ns, 0, sizeof(header->window_start_ns));
	header->sample_bytes = 0;
	header->before_frees = header->before_freed_bytes = header->ranges_dropped = 0;
	header->features &= ~(uint64_t)(GM_FEATURE_TORCH | GM_FEATURE_JOURNAL);
}

/* Forgets the bytes that were there before, which the ledger's next sample measures again. */
static void forget_before(void)
{
	uint32_t device, count = gm_file->tables[GM_TABLE_DEVICES].count;

	for (device = 0; device < count; device++) {
		struct gm_device_record *record = gm_store_record(GM_TABLE_DEVICES, device);

		record->before_bytes = record->before_torch_bytes = GM_NO_BYTES;
	}
}

void gm_track_period_begin(bool history)
{
	int table;

	gm_update_begin();
	gm_journal_stop(); /* its entries name records of the tables that are emptied now */
	for (table = 0; table < GM_TABLES_NOW; table++)
		if (!outlives((enum gm_table_id)table))
			gm_store_clear((enum gm_table_id)table);
	gm_arena_reset(&gm_track_arena);
	clear_header(gm_file);
	forget_records(history);
	forget_before();
	gm_file->window_start_ns[0] = gm_file->period_started_ns = gm_track.now_ns;
	gm_file->period_ended_ns = 0;
	gm_file->periods++;
	gm_update_end();
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
