/*
 * Holes and regions (address_space.h).
 */
#include "report/whatif/address_space.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

#define REGION_BYTES (32ull << 20)
#define MIB	     (1ull << 20)
#define CONTEXT	     (1ull << 46) /* the hole that the context left is around here */
#define LIBRARIES    (CONTEXT - 488 * MIB)
#define OPENS_AFTER  5 /* segments: then the libraries of the first kernels are loaded */

static void insert(struct gm_address_space *space, unsigned at, struct gm_hole hole)
{
	if (space->count == space->room) {
		space->room = space->room ? 2 * space->room : 64;
		space->holes = gm_realloc(space->holes, space->room * sizeof(*space->holes));
	}
	memmove(&space->holes[at + 1], &space->holes[at],
		(space->count - at) * sizeof(*space->holes));
	space->holes[at] = hole;
	space->count++;
}

static void drop(struct gm_address_space *space, unsigned at)
{
	space->count--;
	memmove(&space->holes[at], &space->holes[at + 1],
		(space->count - at) * sizeof(*space->holes));
}

void gm_address_space_begin(struct gm_address_space *space)
{
	*space = (struct gm_address_space){.lowest = LIBRARIES};
	gm_address_space_give(space, CONTEXT, 24 * MIB);
	gm_address_space_give(space, CONTEXT - 74 * MIB, 4 * MIB);
}

uint64_t gm_address_space_take(struct gm_address_space *space, uint64_t bytes)
{
	uint64_t region = (bytes + REGION_BYTES - 1) / REGION_BYTES * REGION_BYTES, start;

	if (space->taken++ == OPENS_AFTER)
		gm_address_space_give(space, LIBRARIES, 412 * MIB);
	for (unsigned i = 0; i < space->count; i++) {
		struct gm_hole *hole = &space->holes[i];

		if (hole->end - hole->start < bytes)
			continue;
		start = hole->start;
		hole->start += bytes;
		if (hole->start == hole->end)
			drop(space, i);
		return start;
	}
	space->lowest -= region;
	if (region > bytes)
		gm_address_space_give(space, space->lowest + bytes, region - bytes);
	return space->lowest;
}

void gm_address_space_give(struct gm_address_space *space, uint64_t start, uint64_t bytes)
{
	uint64_t end = start + bytes;
	unsigned at = 0, high = space->count;

	while (at < high) {
		unsigned middle = (at + high) / 2;

		if (space->holes[middle].start < start)
			at = middle + 1;
		else
			high = middle;
	}
	if (at < space->count && space->holes[at].start == end) {
		end = space->holes[at].end;
		drop(space, at);
	}
	if (at > 0 && space->holes[at - 1].end == start)
		space->holes[at - 1].end = end;
	else
		insert(space, at, (struct gm_hole){start, end});
}

void gm_address_space_free(struct gm_address_space *space)
{
	free(space->holes);
}
