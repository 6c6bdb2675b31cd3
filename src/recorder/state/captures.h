/*
 * Captures of streams into graphs that are under way. Only while there is one can an allocation be
 * a graph's node; without one the driver need not be asked about the allocation's stream.
 */
#ifndef GM_RECORDER_CAPTURES_H
#define GM_RECORDER_CAPTURES_H

#include "api/api.h"
#include "recorder/state/settings.h"

#include <stdbool.h>

/* At least as many captures as are under way (atomic), but for those that nobody saw begin. */
extern uint32_t gm_captures __attribute__((visibility("hidden")));

/*
 * False when no stream of the process is being captured. Always true with CUPTI as the backend, and
 * in a process that was attached to, because the count may then lack some. Any context.
 */
static inline bool gm_captures_under_way(void)
{
	return __atomic_load_n(&gm_captures, __ATOMIC_RELAXED) ||
	       gm_settings.backend == GM_BACKEND_CUPTI || gm_settings.attached;
}

/*
 * Returns whether the call of a capture's end ended the capture. With
 * cudaErrorStreamCaptureInvalidated it did, and there is no graph.
 */
static inline bool gm_capture_is_over(int result)
{
	return result == GM_CUDA_SUCCESS || result == 901;
}

/*
 * Around a call of the role CAPTURE_BEGIN or CAPTURE_END. Any context; calls of signal handlers
 * count too.
 */
void gm_capture_enters(unsigned role);
void gm_capture_leaves(unsigned role, int result);

#endif
