/*
 * Captures of streams into graphs that are under way. Only while there is one can an allocation be
 * a graph's node; without one the driver need not be asked about the allocation's stream.
 */
#ifndef GM_RECORDER_CAPTURES_H
#define GM_RECORDER_CAPTURES_H

#include "api/api.h"
#include "recorder/state/settings.h"

#include <stdbool.h>

/*
 * At least as many captures as are under way, of those that were seen to begin, plus
 * GM_CAPTURES_UNSEEN where there may be others (atomic).
 */
extern uint32_t gm_captures __attribute__((visibility("hidden")));

#define GM_CAPTURES_UNSEEN (1u << 31)

/* A process was attached to, which may have begun captures before. */
void gm_captures_may_be_unseen(void);

/* False when no stream of the process is being captured. For the preload backend. Any context. */
static inline bool gm_captures_counted(void)
{
	return __atomic_load_n(&gm_captures, __ATOMIC_RELAXED) != 0;
}

/* The same for any backend. Always true with CUPTI, because the count may then lack some. */
static inline bool gm_captures_under_way(void)
{
	return gm_captures_counted() || gm_settings.backend == GM_BACKEND_CUPTI;
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
