/*
 * What-if capacity and fault injection (GPUMEMTRACE_CAPACITY, GPUMEMTRACE_FAIL): which allocation
 * calls are answered out of memory.
 */
#include "interpose/preload.h"

bool gm_call_refused(struct gm_call *call)
{
	(void)call;
	return false;
}
