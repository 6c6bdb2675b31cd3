/*
 * Around every real call: which call is the outermost, whether it is recorded, and the way to its
 * role's handlers (roles.c).
 */
#include "interpose/preload.h"
#include "cupti/backend.h"
#include "interpose/captures.h"
#include "interpose/changes.h"
#include "interpose/pass.h"
#include "interpose/refuse.h"
#include "interpose/role_steps.h"
#include "interpose/roles.h"
#include "interpose/settings.h"
#include "interpose/signals.h"
#include "interpose/view.h"
#include "store/writer.h"
#include "track/event.h"

#include <errno.h>

__thread struct gm_thread gm_thread __attribute__((tls_model("initial-exec")));

GM_SELDOM void gm_time_begin(void)
{
	if (gm_owns_file())
		gm_thread.started_ns = gm_track_now();
}

GM_SELDOM void gm_time_end(void)
{
	if (gm_owns_file())
		__atomic_fetch_add(&gm_file->overhead_ns,
				   (gm_track_now() - gm_thread.started_ns) * GM_TIMED,
				   __ATOMIC_RELAXED);
	gm_thread.started_ns = 0;
}

/* Calls that leave the device's memory as it is, or whose own change is measured (role_cost.c). */
static inline bool changes_memory(unsigned role)
{
	switch (role) {
	case GM_ROLE_EXPORT:
	case GM_ROLE_VMM_RESERVE:
	case GM_ROLE_VMM_ADDRESS_FREE:
	case GM_ROLE_MEM_INFO:
	case GM_ROLE_GRAPH_NODE:
	case GM_ROLE_MODULE_LOAD:
	case GM_ROLE_MODULE_UNLOAD:
	case GM_ROLE_MODULE_USE:
	case GM_ROLE_STREAM_CREATE:
	case GM_ROLE_LAUNCH:
	case GM_ROLE_LIMIT:
		return false;
	default:
		return true;
	}
}

const struct gm_call *gm_call_outermost(const struct gm_call *call)
{
	return !call->outermost && gm_is_nested((uintptr_t)call) ?
		       (const struct gm_call *)gm_thread.outermost : call;
}

/* Roles whose calls are not simply inside one another: gm_call_enter asks further. */
static inline bool is_special(unsigned role)
{
	return role == GM_ROLE_LAUNCH || role == GM_ROLE_MODULE_USE || role == GM_ROLE_SYNC ||
	       gm_is_capture(role);
}

/* True if there is no more to do before the call. */
static bool enter_special(struct gm_call *call, const struct gm_row *row)
{
	if (gm_is_capture(row->role)) {
		gm_capture_enters(row->role);
		return true;
	}
	if (row->role == GM_ROLE_LAUNCH)
		return !gm_first_launch(call->key); /* what every program does most: nothing but this look-up */
	if (gm_disabled() || gm_thread.busy)
		return false;
	if (row->role == GM_ROLE_MODULE_USE)
		return !gm_first_use(call->key);
	/* waits: what happens meanwhile is not inside them */
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
		gm_role_begin(call, row);
	}
	gm_leave_tracker();
	*error = saved;
}

void gm_call_enter(struct gm_call *call)
{
	const struct gm_row *row = &gm_rows[call->function];
	uintptr_t here = (uintptr_t)call;

	if (is_special(row->role) && enter_special(call, row))
		return;
	if (gm_disabled() || gm_thread.busy) {
		if (gm_thread.busy && gm_owns_file())
			__atomic_fetch_add(&gm_file->passed_calls, 1, __ATOMIC_RELAXED);
		return;
	}
	call->outermost = !gm_is_nested(here);
	if (call->outermost)
		gm_thread.outermost = here;
	else if (!gm_seen_when_nested(row->role))
		return;
	if (row->role == GM_ROLE_NOTHING)
		return;
	if (call->outermost && changes_memory(row->role))
		gm_change_begins();
	call->ticks = gm_clock_ticks();
	if (row->role == GM_ROLE_ALLOC && gm_owns_file() && !gm_settings.refuses)
		call->recorded = 1; /* nothing is to be known before it */
	else
		prepare(call, row);
}

/*
 * The short way of the calls that come most: an allocation or a free that the program makes, in a process
 * that is recording (own_page.h). All that is asked of others is known of them.
 */
static inline bool is_straight(const struct gm_row *row)
{
	return gm_goes_straight() && !gm_thread.busy && !gm_thread.outermost &&
	       (row->role == GM_ROLE_ALLOC || row->role == GM_ROLE_FREE);
}

static inline void begin_straight(struct gm_call *call, const struct gm_row *row)
{
	call->outermost = call->recorded = 1;
	call->straight = row->role;
	gm_thread.outermost = (uintptr_t)call;
	call->ticks = gm_clock_ticks();
	if (row->role == GM_ROLE_FREE)
		gm_begin_straight_free(call, row);
	else
		gm_change_begins();
}

static __attribute__((noinline)) void begin_any(struct gm_call *call, const struct gm_row *row)
{
	/* A launch is looked at here under either backend: CUPTI would call back for every one of
	 * them, the wrapper passes all but a kernel's first. Captures begun while CUPTI was yet to be
	 * tried count if it could not be had. */
	if (gm_settings.backend == GM_BACKEND_CUPTI && row->role != GM_ROLE_LAUNCH &&
	    !gm_is_capture(row->role) && gm_cupti_tells(row->layer))
		return; /* the wrapper only forwards (cupti/calls.c) */
	gm_call_enter(call);
}

GM_HOT_CODE void gm_call_begin(struct gm_call *call)
{
	const struct gm_row *row = &gm_rows[call->function];

	if (__builtin_expect(is_straight(row), 1))
		begin_straight(call, row);
	else
		begin_any(call, row);
}

static inline void record(struct gm_call *call, const struct gm_row *row, int result)
{
	int *error = &errno, saved = *error;

	gm_enter_tracker();
	if (call->outermost && gm_settings.refuses)
		gm_refuse_end(call);
	gm_role_end(call, row, result);
	if (result == GM_CUDA_SUCCESS &&
	    (row->role == GM_ROLE_CTX_CREATE || row->role == GM_ROLE_CTX_RETAIN))
		gm_sample_context(call->device);
	gm_leave_tracker();
	*error = saved;
}

/* The program's call is over. */
static inline void leave(void)
{
	gm_thread.outermost = 0;
	gm_change_ends();
}

static inline void serve_signals(void)
{
	if (__builtin_expect(__atomic_load_n(&gm_signals_waiting, __ATOMIC_RELAXED) != 0, 0))
		gm_signals_serve();
}

static __attribute__((noinline)) void end_any(struct gm_call *call, int result)
{
	const struct gm_row *row = &gm_rows[call->function];

	if (gm_is_capture(row->role))
		gm_capture_leaves(row->role, result);
	if (call->recorded && gm_owns_file())
		record(call, row, result);
	if (call->outermost)
		leave();
	serve_signals();
}

static inline void end_straight(struct gm_call *call, int result)
{
	const struct gm_row *row = &gm_rows[call->function];

	gm_begin_work();
	if (call->straight == GM_ROLE_FREE)
		gm_end_free(call, row, result);
	else
		gm_end_alloc(call, row, result);
	gm_leave_tracker();
	leave();
	serve_signals();
}

/* After a fork inside the call the file is the parent's. */
GM_HOT_CODE void gm_call_end(struct gm_call *call, int result)
{
	if (__builtin_expect(call->straight && gm_goes_straight(), 1))
		end_straight(call, result);
	else
		end_any(call, result);
}

void gm_call_abandoned(void)
{
	leave();
}

int gm_unwinding(int version, int actions, uint64_t class, void *exception, void *context)
{
	enum { CLEANUP_PHASE = 2, CONTINUE_UNWIND = 8 }; /* the C++ ABI's */

	(void)version;
	(void)class;
	(void)exception;
	(void)context;
	if (actions & CLEANUP_PHASE)
		gm_call_abandoned();
	return CONTINUE_UNWIND;
}
