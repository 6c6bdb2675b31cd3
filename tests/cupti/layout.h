/*
 * Sizes and offsets of CUPTI's parameter structures, twice: as the table's rows give them and as
 * NVIDIA's headers have them. One file sees only one of the two sets of types.
 */
#ifndef TESTS_CUPTI_LAYOUT_H
#define TESTS_CUPTI_LAYOUT_H

#include <stddef.h>

#define MOST_FIELDS 11

struct layout {
	const char *function;
	size_t bytes;
	size_t offset[MOST_FIELDS]; /* in the order of the row's parameters */
	size_t width[MOST_FIELDS];
};

/* Ended by a NULL function. Functions without parameters are left out. */
extern const struct layout layout_of_table[], layout_of_cuda[];

#endif
