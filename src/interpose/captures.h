/*
 * Captures of streams into graphs that are under way. Only while there is one can an allocation be a
 * graph's node, so that otherwise the driver need not be asked about its stream.
 */
#ifndef GM_INTERPOSE_CAPTURES_H
#define GM_INTERPOSE_CAPTURES_H

#include "api/api.h"
#include "interpose/settings.h"

#include <stdbool.h>

/* At least as many as there are (atomic). */
extern uint32_t gm_captures __attribute__((visibility("hidden")));

/* False when no stream of the process is being captured. With CUPTI as the backend the count may lack
 * some: then it is true always. Any context. */
static inline bool gm_captures_under_way(void)
{
	return __atomic_load_n(&gm_captures, __ATOMIC_RELAXED) ||
	       gm_settings.backend == GM_BACKEND_CUPTI;
}

static inline bool gm_is_capture(unsigned role)
{
	return role == GM_ROLE_CAPTURE_BEGIN || role == GM_ROLE_CAPTURE_END;
}

/* Around a call of one of those roles. Any context: signal handlers' calls count like others. */
void gm_capture_enters(unsigned role);
void gm_capture_leaves(unsigned role, int result);

/*
 * The program asked for a driver function of this name that is no row of the table: if it may begin a
 * capture, streams are asked from now on whatever was counted. Any context.
 */
void gm_capture_name(const char *name);

#endif
