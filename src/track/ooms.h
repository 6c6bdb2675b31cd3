/*
 * Out-of-memory events: what was asked for, what the driver and PyTorch had, and a copy of what
 * held the memory. A record is named by a ticket, which leads to nothing once a later event took
 * the record. For track/, under the lock.
 */
#ifndef GM_TRACK_OOMS_H
#define GM_TRACK_OOMS_H

#include "track/event.h"

void gm_ooms_reset(void);

/* Records an out-of-memory event. Returns its ticket, 0 if the file is full. */
uint32_t gm_oom_open(const struct gm_event *event);

/*
 * Records that the same request failed again: the record describes the present moment from now on.
 */
void gm_oom_again(uint32_t ticket, const struct gm_event *event);

/* PyTorch gave up: the request is the one that PyTorch was asked for. `limit`: by its own limit. */
void gm_oom_set_torch_request(uint32_t ticket, const struct gm_event *event, bool limit);

/* The request was served after all. */
void gm_oom_withdraw(uint32_t ticket);

#endif
