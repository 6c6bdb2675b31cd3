/*
 * Steps in making an event of a call, which the handlers of several roles share.
 */
#ifndef GM_RECORDER_ROLE_STEPS_H
#define GM_RECORDER_ROLE_STEPS_H

#include "recorder/calls/call.h"
#include "track/event.h"
#include "track/functions.h"

#include <string.h>

/*
 * The stack of the call: at most `limit` frames, or as many as are set if that is 0. `module` may
 * be NULL.
 */
static inline uint32_t gm_call_stack(const struct gm_call *call, unsigned limit, uint32_t *module)
{
	return gm_stack_take(&call->caller, limit, module);
}

/* The stack of the outermost call, from which the program asked for what happens inside. */
uint32_t gm_outer_call_stack(const struct gm_call *call, uint32_t *module);

/* The new pointer or handle that a successful call wrote. */
static inline uint64_t gm_read_out(const struct gm_call *call)
{
	uint32_t narrow;
	uint64_t wide;

	if (!call->out)
		return 0;
	if (call->narrow) {
		memcpy(&narrow, call->out, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, call->out, sizeof(wide));
	return wide;
}

static inline uint8_t gm_space_of(const struct gm_call *call, const struct gm_row *row)
{
	return call->space ? call->space : row->space;
}

/* Returns the index in the file of the function that was called (gm_track_function). */
static inline uint32_t gm_function_of(const struct gm_call *call, const struct gm_row *row)
{
	_Static_assert(GM_FUNCTIONS <= GM_MOST_FUNCTIONS, "each function has an id below");
	uint32_t index = __atomic_load_n(&gm_function_indices[call->function], __ATOMIC_ACQUIRE);

	return __builtin_expect(index != 0, 1) ?
		       index - 1 : gm_track_function(call->function, row->name, row->layer);
}

/* An event with the fields that all events have. The handler fills in the device and the bytes. */
struct gm_event gm_event_of(const struct gm_call *call, const struct gm_row *row, int result);

/* Device of the calling thread's context; 0 where that is not known. */
int gm_context_device(void);

#define GM_STREAM_LEGACY     1u /* cudaStreamLegacy, another name for 0 */
#define GM_STREAM_PER_THREAD 2u

/* The stream as one number for its different spellings. */
static inline uint64_t gm_stream_of(const struct gm_call *call, const struct gm_row *row)
{
	if (call->stream == GM_STREAM_LEGACY)
		return 0;
	return call->stream == 0 && row->per_thread ? GM_STREAM_PER_THREAD : call->stream;
}

#endif
