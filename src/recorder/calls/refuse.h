/*
 * Refusal of allocation calls by a pretended capacity or by fault injection (GPUMEMTRACE_CAPACITY,
 * GPUMEMTRACE_FAIL): decided for the outermost call, answered in the driver's wrapper inside it.
 */
#ifndef GM_RECORDER_REFUSE_H
#define GM_RECORDER_REFUSE_H

#include "api/api.h"
#include "recorder/state/thread.h"

#include <stdbool.h>

struct gm_call;

/* Decides whether an outermost call is to fail. Called inside the tracker. */
void gm_refuse_begin(struct gm_call *call, const struct gm_row *row);

/* The outermost call is over: sets call->injected if it was refused. Called inside the tracker. */
void gm_refuse_end(struct gm_call *call);

/* Handler of the role MEM_INFO (roles.h): the program sees the figures of the pretended device. */
void gm_refuse_end_mem_info(struct gm_call *call, const struct gm_row *row, int result);

/*
 * Changes the free and total bytes of a device to those that a card of GPUMEMTRACE_CAPACITY would
 * have.
 */
void gm_refuse_mem_info(int device, uint64_t *free_bytes, uint64_t *total_bytes);

/*
 * True when this call is to be answered out of memory without calling CUDA, and its out-pointer is
 * then 0. Only in a wrapper of the driver's, so that cudart sets its own error state.
 */
bool gm_refuse_answers(struct gm_call *call);

static inline bool gm_call_refused(struct gm_call *call)
{
	return __builtin_expect(gm_thread.refusing, 0) && gm_refuse_answers(call);
}

#endif
