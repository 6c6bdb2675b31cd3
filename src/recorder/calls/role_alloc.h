/*
 * The roles of allocations and frees, which have a fast path past call.c (interpose/wrap.c).
 */
#ifndef GM_RECORDER_ROLE_ALLOC_H
#define GM_RECORDER_ROLE_ALLOC_H

struct gm_call;
struct gm_row;

/* Handlers (internal.h). errno stays. */
void gm_end_alloc(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_free(struct gm_call *call, const struct gm_row *row);
void gm_end_free(struct gm_call *call, const struct gm_row *row, int result);

/*
 * All that is to be done before a free on the fast path: it is counted as in flight and its record
 * found.
 */
void gm_begin_free_fast(struct gm_call *call, const struct gm_row *row);

#endif
