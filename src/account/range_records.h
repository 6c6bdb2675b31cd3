/*
 * The rules of the records of ranges (struct gm_range_record), for the tracker and the importer.
 * Both functions are pure: they change what they are given and nothing else.
 */
#ifndef GM_ACCOUNT_RANGE_RECORDS_H
#define GM_ACCOUNT_RANGE_RECORDS_H

#include "store/layout.h"

#include <stdbool.h>

/*
 * Writes the name of the group that a name belongs to: the name with each number, also a
 * hexadecimal one, as '#'. `to` has room for as many bytes as `text` and its NUL. Returns false if
 * there is no number.
 */
bool gm_range_pattern(char *to, const char *text);

/* Adds the figures of an instance that was measured. The caller counts `closed`. */
void gm_range_add_instance(struct gm_range_record *record,
			   const struct gm_range_instance *instance);

#endif
