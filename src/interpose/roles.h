/*
 * What each role of the table means: arguments and results of a call become events of track/.
 */
#ifndef GM_INTERPOSE_ROLES_H
#define GM_INTERPOSE_ROLES_H

#include "api/api.h"

/* Before the real call: what must be known or marked then. */
void gm_role_begin(struct gm_call *call, const struct gm_row *row);

/* After it. CUDA may be asked questions (ask.h); the program's state is not changed. */
void gm_role_end(struct gm_call *call, const struct gm_row *row, int result);

#endif
