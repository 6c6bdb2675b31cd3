/*
 * The roles of allocations and frees, which have a fast path past call.c (interpose/wrap.c).
 */
#ifndef GM_RECORDER_ROLE_ALLOC_H
#define GM_RECORDER_ROLE_ALLOC_H

#include "recorder/calls/role_steps.h"
#include "store/writer.h"
#include "track/driver_allocs.h"
#include "track/graphs.h"

/* Handlers (internal.h). */
void gm_end_alloc(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_free(struct gm_call *call, const struct gm_row *row);
void gm_end_free(struct gm_call *call, const struct gm_row *row, int result);

/* The slow path of gm_begin_free_fast. */
void gm_begin_free_slow(struct gm_call *call, const struct gm_row *row);

/*
 * Does as gm_begin_free, on the fast path. It changes nothing but the call, so a signal handler of
 * the program may interrupt it and make calls that are recorded.
 */
static inline void gm_begin_free_fast(struct gm_call *call, const struct gm_row *row)
{
	if (__builtin_expect(gm_track_graph_nodes() || gm_file->periods, 0))
		gm_begin_free_slow(call, row);
	else
		call->latest = gm_track_free_begin(gm_space_of(call, row), call->key);
}

/* Record the end of a call on the fast path, which is then over. errno stays. */
void gm_end_alloc_fast(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_free_fast(struct gm_call *call, const struct gm_row *row, int result);

#endif
