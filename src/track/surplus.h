/*
 * Live allocations for which the file has no room. Their records are in private memory, so that
 * their frees are recognised and totals, peaks and counts stay exact; a reader of the file does not
 * see them. For live.c, under the lock.
 */
#ifndef GM_TRACK_SURPLUS_H
#define GM_TRACK_SURPLUS_H

#include "store/layout.h"

#include <stdbool.h>

/* Forgets all records when a file was opened. */
void gm_surplus_reset(void);

/* Adds an empty record, which the caller fills; NULL if there is no memory for it. */
struct gm_alloc_record *gm_surplus_add(unsigned space, uint64_t key);

/* Returns the record of a key, NULL if it is not here. */
struct gm_alloc_record *gm_surplus_find(unsigned space, uint64_t key);

void gm_surplus_remove(const struct gm_alloc_record *record);

/* Calls `visit` with GM_NONE as index until it returns false. It may remove the record. */
void gm_surplus_each(bool (*visit)(struct gm_alloc_record *, uint32_t index, void *), void *data);

#endif
