/*
 * Texts and small keys numbered in the order of their first appearance, for formats that write each
 * thing once and refer to it by number afterwards.
 */
#ifndef GM_REPORT_SUPPORT_NUMBERING_H
#define GM_REPORT_SUPPORT_NUMBERING_H

#include <stdbool.h>
#include <stddef.h>

struct gm_numbering {
	struct gm_numbered *head;
	unsigned count;
};

/* The number of these bytes, from 0; `*added` tells that they were not there before. */
unsigned gm_number_of(struct gm_numbering *table, const void *bytes, size_t count, bool *added);

/* Whether the key has a number already. */
bool gm_is_numbered(const struct gm_numbering *table, const void *bytes, size_t count);

void gm_numbering_free(struct gm_numbering *table);

#endif
