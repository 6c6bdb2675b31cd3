/*
 * Holes and regions (address_space.h).
 */
#include "report/whatif/address_space.h"
#include "report/support/memory.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define REGION_BYTES (32ull << 20)
#define MIB	     (1ull << 20)
#define CONTEXT	     (1ull << 46) /* the hole that the context left is around here */
#define LIBRARIES_AT (488 * MIB)  /* so far below it the libraries' hole begins */
#define LIBRARIES    (412 * MIB)
#define GAP	     (5000 * MIB) /* so far above it host memory leaves gaps */
#define SMALL_HOLE   (74 * MIB)	  /* so far below it a hole of 4 MiB lies */
#define CONTEXT_HOLE (24 * MIB)

const struct gm_usual_regions gm_usual_regions[] = {
	{3, 6}, {UINT_MAX, 5}, {0, 3}, {UINT_MAX, UINT_MAX}};
const unsigned gm_usual_regions_count = sizeof(gm_usual_regions) / sizeof(gm_usual_regions[0]);

static uint64_t region_of(uint64_t bytes)
{
	return (bytes + REGION_BYTES - 1) / REGION_BYTES * REGION_BYTES;
}

/* ---- the regions of a recorded run ---- */

/* Returns the context's address, by the first segment, which lies around it by the rules below. */
static uint64_t context_of(uint64_t address, uint64_t bytes)
{
	if (bytes <= 4 * MIB)
		return address + SMALL_HOLE;
	return bytes <= CONTEXT_HOLE ? address : address + region_of(bytes) + LIBRARIES_AT;
}

void gm_regions_learn(struct gm_recorded_regions *regions, uint64_t address, uint64_t bytes,
		      uint32_t number)
{
	if (!regions->known) {
		*regions = (struct gm_recorded_regions){.known = true,
							.context = context_of(address, bytes),
							.above_at = UINT32_MAX,
							.opened_at = UINT32_MAX};
		return;
	}
	if (regions->opened_at != UINT32_MAX)
		return;
	if (address >= regions->context + LIBRARIES_AT && regions->above_at == UINT32_MAX)
		regions->above_at = number;
	if (address + LIBRARIES_AT >= regions->context &&
	    address + LIBRARIES_AT + bytes <= regions->context + LIBRARIES)
		regions->opened_at = number;
}

/* ---- holes and regions ---- */

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

void gm_address_space_begin(struct gm_address_space *space, const struct gm_usual_regions *usual)
{
	*space = (struct gm_address_space){
		.lowest = CONTEXT - LIBRARIES_AT, .highest = CONTEXT + GAP, .usual = usual};
	gm_address_space_give(space, CONTEXT, CONTEXT_HOLE);
	gm_address_space_give(space, CONTEXT - SMALL_HOLE, 4 * MIB);
}

void gm_address_space_change(struct gm_address_space *space, enum gm_regions regions)
{
	if (regions == GM_REGIONS_OPENED && space->regions != regions)
		gm_address_space_give(space, CONTEXT - LIBRARIES_AT, LIBRARIES);
	space->regions = regions;
}

/* Takes the lowest hole that is large enough; 0 without one. */
static uint64_t take_hole(struct gm_address_space *space, uint64_t bytes)
{
	for (unsigned i = 0; i < space->count; i++) {
		struct gm_hole *hole = &space->holes[i];
		uint64_t start = hole->start;

		if (hole->end - start < bytes)
			continue;
		hole->start += bytes;
		if (hole->start == hole->end)
			drop(space, i);
		return start;
	}
	return 0;
}

uint64_t gm_address_space_take(struct gm_address_space *space, uint64_t bytes)
{
	uint64_t region = region_of(bytes), start, *place;

	if (space->usual && space->taken == space->usual->above_after)
		gm_address_space_change(space, GM_REGIONS_ABOVE);
	if (space->usual && space->taken == space->usual->opened_after)
		gm_address_space_change(space, GM_REGIONS_OPENED);
	space->taken++;
	start = take_hole(space, bytes);
	if (start)
		return start;
	place = space->regions == GM_REGIONS_ABOVE ? &space->highest : &space->lowest;
	*place -= region;
	if (region > bytes)
		gm_address_space_give(space, *place + bytes, region - bytes);
	return *place;
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
