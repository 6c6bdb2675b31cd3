/*
 * What-if capacity and fault injection: decided for the outermost call, answered in the driver's
 * wrapper inside it (gm_call_refused in preload.h). Both are called inside the tracker.
 */
#ifndef GM_INTERPOSE_REFUSE_H
#define GM_INTERPOSE_REFUSE_H

#include "api/api.h"
#include <stdbool.h>

/* Decides whether an outermost call is to fail. */
void gm_refuse_begin(struct gm_call *call, const struct gm_row *row);

/* The outermost call is over: call->injected tells whether it was refused. */
void gm_refuse_end(struct gm_call *call);

/* The role of cudaMemGetInfo: the program is told of the pretended device. */
void gm_refuse_end_mem_info(struct gm_call *call, const struct gm_row *row, int result);

/* Free and total bytes of a device as a card of GPUMEMTRACE_CAPACITY would tell them. */
void gm_refuse_mem_info(int device, uint64_t *free_bytes, uint64_t *total_bytes);

#endif
