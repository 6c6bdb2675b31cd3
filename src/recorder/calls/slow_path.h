/*
 * The slow path around a real call. Allocations and frees usually take the fast path
 * (interpose/wrap.c).
 */
#ifndef GM_RECORDER_SLOW_PATH_H
#define GM_RECORDER_SLOW_PATH_H

struct gm_call;

/*
 * Called before the real function. Finds out whether the call is the outermost, and prepares what
 * must be known before (a free's record, the driver's free bytes). Allocates nothing and never
 * fails. Any thread, also in signal handlers; errno stays.
 */
void gm_call_enter(struct gm_call *call);

/*
 * Called after it, with its result. Records what happened; the caller returns `result` unchanged.
 * Any thread, also in signal handlers; errno stays.
 */
void gm_call_leave(struct gm_call *call, int result);

#endif
