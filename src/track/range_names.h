/*
 * The records of ranges: which record a name has, and what is counted in it. For track/, under the
 * lock.
 */
#ifndef GM_TRACK_RANGE_NAMES_H
#define GM_TRACK_RANGE_NAMES_H

#include "track/named_ranges.h"

void gm_range_names_reset(void);

/*
 * Returns the index of the record of a name inside the group `parent` (GM_NONE: in no range), which
 * is made if need be: its own, or that of its group where many names differ only in numbers.
 * GM_NONE if there is no room for either, which is counted.
 */
uint32_t gm_range_find_or_make(const struct gm_range_name *name, uint32_t parent);

/* The record of the group that a record belongs to: itself, if it is one. */
uint32_t gm_range_group(uint32_t record);

/*
 * Counts a range that was closed, on a device, in its record and its group's. `instance` is NULL
 * with GM_HOST: nothing was in use on any device.
 */
void gm_range_count(uint32_t record, int device, const struct gm_range_instance *instance);

#endif
