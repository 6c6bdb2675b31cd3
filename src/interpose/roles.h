/*
 * What each role of the table means: arguments and results of a call become events of track/.
 */
#ifndef GM_INTERPOSE_ROLES_H
#define GM_INTERPOSE_ROLES_H

#include "api/api.h"

struct gm_role_steps {
	void (*begin)(struct gm_call *call, const struct gm_row *row);
	void (*end)(struct gm_call *call, const struct gm_row *row, int result);
};
extern const struct gm_role_steps gm_role_steps[GM_ROLES] __attribute__((visibility("hidden")));

/* Before the real call: what must be known or marked then. */
static inline void gm_role_begin(struct gm_call *call, const struct gm_row *row)
{
	if (gm_role_steps[row->role].begin)
		gm_role_steps[row->role].begin(call, row);
}

/* After it. CUDA may be asked questions (ask.h); the program's state is not changed. */
static inline void gm_role_end(struct gm_call *call, const struct gm_row *row, int result)
{
	if (gm_role_steps[row->role].end)
		gm_role_steps[row->role].end(call, row, result);
}

/*
 * The program asked for a driver function of this name that is no row of the table: if it may make contexts,
 * whose context it is is asked at each allocation from now on. Any context.
 */
void gm_context_name(const char *name);

#endif
