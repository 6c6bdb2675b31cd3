/*
 * What calls.c leaves to track.c, beside gm_alloc: frees that are not usual. Private to track/, under the
 * lock. `record`: the ticket's if it is still that allocation, else NULL.
 */
#ifndef GM_TRACK_CALLS_H
#define GM_TRACK_CALLS_H

#include "track/state.h"

void gm_free_succeeded(struct gm_ticket ticket, struct gm_alloc_record *record,
		       const struct gm_event *event);
void gm_free_failed(struct gm_alloc_record *record, const struct gm_event *event);

#endif
