/*
 * Stretches of addresses in order, none overlapping another, each with the number of what it is.
 * For replaying an allocator's history, forward and backward.
 */
#ifndef GM_REPORT_IMPORT_RANGES_H
#define GM_REPORT_IMPORT_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct gm_tagged_range {
	uint64_t start, end;
	uint64_t tag; /* the caller's */
};

struct gm_ranges {
	struct gm_tagged_range *ranges;
	unsigned count, room;
};

/* Number of the first range that ends after an address; `count` if there is none. */
unsigned gm_ranges_at(const struct gm_ranges *set, uint64_t address);

/* The range that begins at this address, NULL. */
struct gm_tagged_range *gm_ranges_find(struct gm_ranges *set, uint64_t start);

/* Adds a range; false if it is empty or overlaps one. */
bool gm_ranges_add(struct gm_ranges *set, uint64_t start, uint64_t end, uint64_t tag);

/* Takes out the range that begins here; false if there is none. */
bool gm_ranges_remove(struct gm_ranges *set, uint64_t start);

/*
 * Takes out the part of one range that begins at `start` and ends at `end` or where the range does.
 * `*cut` gets it. False if no range holds `start`.
 */
bool gm_ranges_cut(struct gm_ranges *set, uint64_t start, uint64_t end,
		   struct gm_tagged_range *cut);

void gm_ranges_free(struct gm_ranges *set);

#endif
