/*
 * Allocations from their start to their end, with all that follows from them: sites, totals, pools,
 * PyTorch's record, virtual memory, chains of retries, the log.
 */
#ifndef GM_TRACK_ALLOCS_H
#define GM_TRACK_ALLOCS_H

#include "track/event.h"

/*
 * Frees what `matches` picks, for `cause` (reset, context, pool, graph): neither a leak nor a free
 * by the program. `stack` is that of the call which is the cause, or GM_NONE.
 */
void gm_track_implicit_free(enum gm_implicit_cause cause, uint32_t stack,
			    bool (*matches)(const struct gm_alloc_record *, const void *),
			    const void *data);

/* Copies the live record of a key; returns false if there is none. */
bool gm_track_find(uint8_t space, uint64_t key, struct gm_alloc_record *out);

/* ---- for track/, under the lock ---- */

/*
 * Records an allocation, after ending an older one of the same key, whose free was missed. Returns
 * its record, NULL if the file is full.
 */
struct gm_alloc_record *gm_record_alloc(const struct gm_event *event);

/*
 * Records a free that CUDA accepted, or that failed because the process ends (event->error).
 * `record` is the ticket's if it is still that allocation, else NULL.
 */
void gm_record_free(struct gm_ticket ticket, struct gm_alloc_record *record,
		    const struct gm_event *event);

/*
 * The driver answered an allocation of the calling thread that it is unloading
 * (GM_ERROR_TEARDOWN). gm_record_free tells stale frees by it.
 */
void gm_note_refused_at_end(void);

/* Records a free that CUDA refused: the allocation is live again. */
void gm_record_failed_free(struct gm_alloc_record *record, const struct gm_event *event);

/* Logs and counts an allocation that ends without a free call; the caller then ends it. */
void gm_record_implicit_free(const struct gm_alloc_record *record, enum gm_implicit_cause cause,
			     uint32_t stack);

/* Ends an allocation: it leaves all totals, and its record is empty afterwards. */
void gm_remove_alloc(struct gm_alloc_record *record, uint32_t index);

/* A handle whose size the driver does not tell holds at least `bytes`. */
void gm_resize_alloc(struct gm_alloc_record *record, uint32_t index, uint64_t bytes);

/* Ends a handle that was released if no reference, mapping, tile or binding is left. */
void gm_end_unheld_handle(struct gm_alloc_record *handle, uint32_t index);

/* A mapping, tile or binding of the handle with this index is gone. */
void gm_release_mapping(uint32_t index);

#endif
