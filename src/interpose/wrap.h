/*
 * The steps of a wrapper around the real function (driver.c, runtime.c).
 */
#ifndef GM_INTERPOSE_WRAP_H
#define GM_INTERPOSE_WRAP_H

#include "recorder/calls/call.h"

/*
 * Before and after the real function, as gm_call_enter and gm_call_leave
 * (recorder/calls/slow_path.h). Allocations and frees that the program makes take a fast path, if
 * gm_call_prepare said so. While CUPTI is the backend, calls that it reports are only forwarded.
 */
void gm_call_begin(struct gm_call *call);
void gm_call_end(struct gm_call *call, int result);

/*
 * Prepares a call that GM_CALL has initialised: what the fast path needs to know of a row is
 * computed when the wrapper is compiled. The fast path is for frees, and for allocations of memory
 * that its size and its stream describe. Such a call is the outermost one and recorded.
 */
static inline void gm_call_prepare(struct gm_call *call, enum gm_role role, enum gm_kind kind)
{
	bool plain = (kind == GM_KIND_DEVICE || kind == GM_KIND_ASYNC) && !call->location &&
		     !call->rows && !call->space && !call->narrow;

	if (role != GM_ROLE_FREE && (role != GM_ROLE_ALLOC || !plain))
		return;
	call->outermost = call->recorded = 1;
	call->fast_role = (uint8_t)role;
}

/*
 * First thing in a wrapper: if an exception or the cancellation of the thread unwinds through it,
 * the mark of its call goes too. It takes a personality routine alone, without a landing pad, which
 * would need libgcc.
 */
#define GM_WATCH_UNWINDING() __asm__ volatile(".cfi_personality 0x1b, gm_unwinding")

/* The personality routine that GM_WATCH_UNWINDING names, for the unwinder. */
int gm_unwinding(int version, int actions, uint64_t class, void *exception, void *context);

#endif
