/*
 * Contexts of calls.
 */
#ifndef GM_RECORDER_ROLE_CONTEXT_H
#define GM_RECORDER_ROLE_CONTEXT_H

#include "recorder/calls/call.h"
#include "recorder/query/query.h"
#include "track/contexts.h"

/* The context that the thread used last and its number, valid until a context comes or goes. */
struct gm_last_context {
	uint64_t handle;
	uint32_t changes, number;
};
extern __thread struct gm_last_context gm_last_context
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * Returns the number of any context plus 1, which is entered if it is not known; the slow path of
 * gm_current_context.
 */
uint32_t gm_find_context(const struct gm_call *call, uint64_t handle);

/* The number of the calling thread's context plus 1 (gm_track_context), 0 without one. */
static inline uint32_t gm_current_context(const struct gm_call *call)
{
	uint64_t handle = gm_query_current_context();

	if (__builtin_expect(handle && gm_last_context.handle == handle &&
				     gm_last_context.changes == gm_track_context_changes(), 1))
		return gm_last_context.number + 1;
	return gm_find_context(call, handle);
}

#endif
