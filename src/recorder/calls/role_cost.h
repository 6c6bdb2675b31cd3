/*
 * What calls of a MEASURED role (api/roles.def) take of the device beside allocations.
 */
#ifndef GM_RECORDER_ROLE_COST_H
#define GM_RECORDER_ROLE_COST_H

#include "recorder/calls/roles.h"

/*
 * Before and after the real call, inside the tracker: the device is read, and what the call took is
 * recorded. `cost` is the column of the call's role.
 */
void gm_begin_cost(struct gm_call *call, const struct gm_row *row);
void gm_end_cost(struct gm_call *call, const struct gm_row *row, const struct gm_role_cost *cost,
		 int result);

#endif
