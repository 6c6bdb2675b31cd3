/*
 * Sorting by numbers, in time that rises with the count alone: a file may have millions of blocks.
 */
#ifndef GM_REPORT_SUPPORT_SORT_H
#define GM_REPORT_SUPPORT_SORT_H

#include <stddef.h>
#include <stdint.h>

struct gm_keyed {
	uint64_t key;
	uint32_t number; /* of what is sorted, in its own array */
};

/*
 * Sorts the list by rising keys; entries of equal keys keep their order, so a list is sorted by two
 * keys by sorting it by the lesser one first. Needs as much memory again while it works.
 */
void gm_sort_keyed(struct gm_keyed *list, size_t count);

#endif
