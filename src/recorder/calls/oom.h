/*
 * Calls that were refused for want of memory. Any thread; no lock of the tracker's may be held.
 */
#ifndef GM_RECORDER_OOM_H
#define GM_RECORDER_OOM_H

#include "stack/stack.h"
#include "track/event.h"

struct gm_call;
struct gm_row;

/* Records an allocation call that failed for want of memory, with what the device held then. */
void gm_record_oom(const struct gm_call *call, struct gm_event *event);

/*
 * Records any other call that failed for want of memory, whose need is not known: `row` is the
 * call's. Called inside the tracker.
 */
void gm_record_refusal(const struct gm_call *call, const struct gm_row *row);

/*
 * Records a launch that failed for want of memory and was only forwarded, made where `caller` says.
 * Outside of the tracker; keeps errno.
 */
void gm_record_refused_launch(uint32_t function, struct gm_entry caller);

#endif
