/*
 * Frees that CUDA refused, classified by what is known of the pointer. A free that CUDA accepted is
 * never reported here, except as GM_ERROR_FREED_WHILE_EXPORTED. For track/, under the lock.
 */
#ifndef GM_TRACK_ERRORS_H
#define GM_TRACK_ERRORS_H

#include "track/event.h"

/*
 * Records an error of a free. `bytes` are those of the allocation that it is about; `victim_site`
 * is the site of the memory that the first free took. GM_NONE: not known.
 */
void gm_record_error(enum gm_error_type type, const struct gm_event *event, uint64_t bytes,
		     uint32_t first_free_stack, uint32_t victim_site);

/*
 * Finds out what was wrong with a free that CUDA refused, and records it. `alloc`: the live record
 * of the key, NULL if there is none.
 */
void gm_record_free_error(const struct gm_event *event, struct gm_alloc_record *alloc);

#endif
