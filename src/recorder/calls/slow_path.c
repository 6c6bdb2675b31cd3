/*
 * The slow path around a real call (slow_path.h). It finds out which call is the outermost and
 * whether the call is recorded, and calls the handlers of its role (roles.h).
 */
#include "recorder/calls/slow_path.h"
#include "recorder/calls/call.h"
#include "recorder/state/captures.h"
#include "recorder/calls/code_seen.h"
#include "recorder/calls/oom.h"
#include "recorder/state/fork_page.h"
#include "recorder/calls/refuse.h"
#include "recorder/calls/role_cost.h"
#include "recorder/calls/roles.h"
#include "recorder/calls/sleep.h"
#include "recorder/state/settings.h"
#include "recorder/process/held_copy.h"
#include "recorder/process/signals.h"
#include "track/clock.h"
#include "track/pools.h"
#include "track/recording.h"

#include <errno.h>

/*
 * Handles the roles whose calls are not simply part of the call that they are nested in. Returns
 * true if nothing more is to be done before the call.
 */
static bool enter_special(struct gm_call *call, const struct gm_role_info *role)
{
	if (role->entry == GM_ENTRY_CAPTURE) {
		gm_capture_enters(gm_rows[call->function].role);
		call->recorded = !gm_disabled() && !gm_thread.busy && gm_owns_file();
		return true;
	}
	/* Launches are frequent, and all but a kernel's first need this look-up alone. */
	if (role->entry == GM_ENTRY_LAUNCH)
		return !gm_first_launch(call->key);
	if (gm_disabled() || gm_thread.busy)
		return false;
	if (role->entry == GM_ENTRY_CODE_USE)
		return !gm_first_use(call->key);
	/* A wait is no outermost call: what happens during it is not part of it. */
	call->recorded = gm_track_pools_waiting() && gm_owns_file();
	return true;
}

static void prepare(struct gm_call *call, const struct gm_row *row)
{
	int *error = &errno, saved = *error;

	gm_enter_tracker();
	if (gm_recording()) {
		call->recorded = 1;
		if (call->outermost && gm_settings.refuses)
			gm_refuse_begin(call, row);
		if (gm_role_table[row->role].cost.measured)
			gm_begin_cost(call, row, &gm_role_table[row->role].cost);
		if (gm_role_table[row->role].begin)
			gm_role_table[row->role].begin(call, row);
	}
	gm_leave_tracker();
	*error = saved;
}

void gm_call_enter(struct gm_call *call)
{
	const struct gm_row *row = &gm_rows[call->function];
	const struct gm_role_info *role = &gm_role_table[row->role];
	uintptr_t here = (uintptr_t)call;

	if (role->entry != GM_ENTRY_PLAIN && enter_special(call, role))
		return;
	if (gm_disabled() || gm_thread.busy) {
		if (gm_thread.busy && gm_owns_file())
			gm_track_passed_call();
		else if (gm_thread.busy)
			gm_passed_early();
		return;
	}
	call->outermost = !gm_is_nested(here);
	if (call->outermost) {
		if (!gm_thread.interrupted && gm_is_interrupted(here))
			gm_thread.interrupted = gm_thread.outermost;
		gm_thread.outermost = here;
	} else if (!role->nested) {
		return;
	}
	if (row->role == GM_ROLE_NOTHING)
		return;
	if (call->outermost && role->changes)
		gm_in_flight_begin();
	call->ticks = gm_clock_ticks();
	if (!role->begin && !role->cost.measured && gm_owns_file() && !gm_settings.refuses)
		call->recorded = 1; /* nothing is to be known before it */
	else
		prepare(call, row);
}

/* The handlers of these roles record what failed for want of memory themselves. */
static bool records_failures(unsigned role)
{
	return role == GM_ROLE_ALLOC || role == GM_ROLE_REGISTER || role == GM_ROLE_GRAPH_NODE;
}

static inline void record(struct gm_call *call, const struct gm_row *row, int result)
{
	int *error = &errno, saved = *error;

	gm_enter_tracker();
	if (call->outermost && gm_settings.refuses)
		gm_refuse_end(call);
	if (gm_role_table[row->role].cost.measured)
		gm_end_cost(call, row, &gm_role_table[row->role].cost, result);
	if (gm_role_table[row->role].end)
		gm_role_table[row->role].end(call, row, result);
	if (result == GM_CUDA_OUT_OF_MEMORY && call->outermost && !records_failures(row->role))
		gm_record_refusal(call, row);
	gm_leave_tracker();
	*error = saved;
}

/* A fork during the call leaves the file to the parent: the child records nothing of the call. */
void gm_call_leave(struct gm_call *call, int result)
{
	const struct gm_row *row = &gm_rows[call->function];

	if (gm_role_table[row->role].entry == GM_ENTRY_CAPTURE)
		gm_capture_leaves(row->role, result);
	if (call->recorded && gm_owns_file())
		record(call, row, result);
	else if (row->role == GM_ROLE_LAUNCH && result == GM_CUDA_OUT_OF_MEMORY)
		gm_record_refused_launch(call->function, call->caller);
	else if (row->role == GM_ROLE_LAUNCH)
		gm_sample_at_launch();
	if (call->outermost) {
		gm_call_over();
		gm_thread.outermost = gm_thread.interrupted;
		gm_thread.interrupted = 0;
	}
	if (call->recorded && gm_owns_file())
		gm_sleep_if_asked();
	gm_signals_serve_waiting();
	gm_holders_moment(GM_HOLDERS_GROW);
}
