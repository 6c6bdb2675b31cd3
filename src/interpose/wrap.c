/*
 * This file has the fast path of allocations and frees around the real function of a wrapper
 * (wrap.h). It also decides whether the wrapper or CUPTI reports a call.
 */
#include "interpose/wrap.h"
#include "cupti/backend.h"
#include "recorder/state/fork_page.h"
#include "recorder/calls/role_alloc.h"
#include "recorder/calls/roles.h"
#include "recorder/calls/sleep.h"
#include "recorder/calls/slow_path.h"
#include "recorder/state/settings.h"
#include "recorder/process/signals.h"
#include "track/clock.h"

/*
 * The fast path is for the most frequent calls: an allocation or a free that the program itself
 * makes, in a process that is recording (gm_fast_path_open). All that gm_call_enter finds out is
 * then known.
 */
static inline bool is_fast(const struct gm_row *row)
{
	return gm_fast_path_open() && !gm_thread.busy && !gm_thread.outermost &&
	       (row->role == GM_ROLE_ALLOC || row->role == GM_ROLE_FREE);
}

static inline void begin_fast(struct gm_call *call, const struct gm_row *row)
{
	call->outermost = call->recorded = 1;
	call->fast_role = row->role;
	gm_thread.outermost = (uintptr_t)call;
	call->ticks = gm_clock_ticks();
	if (row->role == GM_ROLE_FREE)
		gm_begin_free_fast(call, row);
	else
		gm_in_flight_begin();
}

/*
 * Launches and captures are the wrapper's business under either backend. CUPTI would call back for
 * every launch, while the wrapper passes all but a kernel's first; and captures that begin before
 * CUPTI was tried count in case it cannot be used.
 */
static __attribute__((noinline)) void begin_slow(struct gm_call *call, const struct gm_row *row)
{
	if (gm_settings.backend == GM_BACKEND_CUPTI &&
	    gm_role_table[row->role].source != GM_SOURCE_WRAPPER && gm_cupti_reports(row->layer))
		return;
	gm_call_enter(call);
}

GM_HOT_CODE void gm_call_begin(struct gm_call *call)
{
	const struct gm_row *row = &gm_rows[call->function];

	if (__builtin_expect(is_fast(row), 1))
		begin_fast(call, row);
	else
		begin_slow(call, row);
}

static inline void end_fast(struct gm_call *call, int result)
{
	const struct gm_row *row = &gm_rows[call->function];

	gm_begin_work();
	if (call->fast_role == GM_ROLE_FREE)
		gm_end_free(call, row, result);
	else
		gm_end_alloc(call, row, result);
	gm_leave_tracker();
	gm_call_over();
	gm_sleep_if_asked();
	gm_signals_serve_waiting();
}

/* After a fork during the call the fast path is closed. */
GM_HOT_CODE void gm_call_end(struct gm_call *call, int result)
{
	if (__builtin_expect(call->fast_role && gm_fast_path_open(), 1))
		end_fast(call, result);
	else
		gm_call_leave(call, result);
}

int gm_unwinding(int version, int actions, uint64_t class, void *exception, void *context)
{
	enum { CLEANUP_PHASE = 2, CONTINUE_UNWIND = 8 }; /* the C++ ABI's */

	(void)version;
	(void)class;
	(void)exception;
	(void)context;
	if (actions & CLEANUP_PHASE)
		gm_call_over();
	return CONTINUE_UNWIND;
}
