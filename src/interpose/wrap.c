/*
 * This file has the fast path of allocations and frees around the real function of a wrapper
 * (wrap.h). It also decides whether the wrapper or CUPTI reports a call.
 */
#include "interpose/wrap.h"
#include "cupti/backend.h"
#include "recorder/state/fork_page.h"
#include "recorder/calls/role_alloc.h"
#include "recorder/calls/roles.h"
#include "recorder/calls/slow_path.h"
#include "recorder/state/settings.h"
#include "track/clock.h"

/*
 * The fast path is for calls that gm_call_prepare marked and that the program itself makes, in a
 * process that is recording (gm_fast_path_open). All that gm_call_enter finds out is then known.
 */
static inline bool is_fast(const struct gm_call *call)
{
	return call->fast_role && gm_fast_path_open() && !gm_thread.busy && !gm_thread.outermost;
}

/*
 * Launches and captures are the wrapper's business under either backend. CUPTI would call back for
 * every launch, while the wrapper passes all but a kernel's first; and captures that begin before
 * CUPTI was tried count in case it cannot be used.
 */
static __attribute__((noinline)) void begin_slow(struct gm_call *call)
{
	const struct gm_row *row = &gm_rows[call->function];

	call->marks = 0;
	if (gm_settings.backend == GM_BACKEND_CUPTI &&
	    gm_role_table[row->role].source != GM_SOURCE_WRAPPER && gm_cupti_reports(row->layer))
		return;
	gm_call_enter(call);
}

GM_HOT_CODE void gm_call_begin(struct gm_call *call)
{
	if (__builtin_expect(!is_fast(call), 0)) {
		begin_slow(call);
		return;
	}
	gm_thread.outermost = (uintptr_t)call;
	call->ticks = gm_clock_ticks();
	gm_in_flight_begin();
	if (call->fast_role == GM_ROLE_FREE)
		gm_begin_free_fast(call, &gm_rows[call->function]);
}

/* After a fork during the call the fast path is closed. */
GM_HOT_CODE void gm_call_end(struct gm_call *call, int result)
{
	if (__builtin_expect(!call->fast_role || !gm_fast_path_open(), 0))
		gm_call_leave(call, result);
	else if (call->fast_role == GM_ROLE_FREE)
		gm_end_free_fast(call, &gm_rows[call->function], result);
	else
		gm_end_alloc_fast(call, &gm_rows[call->function], result);
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
