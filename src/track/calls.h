/*
 * The straight way of usual allocations and frees of the driver's own level (calls.c). Private to track/,
 * under the lock. False: nothing was done, it is not usual.
 */
#ifndef GM_TRACK_CALLS_H
#define GM_TRACK_CALLS_H

#include "track/state.h"

bool gm_usual_alloc(const struct gm_event *event);

/* A free that succeeded, of the record that it was begun for. */
bool gm_usual_free(struct gm_alloc_record *record, const struct gm_event *event);

#endif
