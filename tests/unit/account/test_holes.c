/*
 * The walk that finds holes: cases drawn by hand, and random layouts against a map of cells that
 * knows nothing of segments' ends but what is written in each cell.
 */
#include "../stack/cmocka_all.h"
#include "account/hole_walk.h"

#include <stdlib.h>
#include <string.h>

#define MIB (1ull << 20)

static struct gm_alloc_record block(uint64_t start, uint64_t bytes, uint32_t site)
{
	return (struct gm_alloc_record){.key = start,
					.bytes = bytes,
					.site = site,
					.space = GM_SPACE_TORCH,
					.kind = GM_KIND_DEVICE,
					.level = GM_LEVEL_TORCH};
}

static struct gm_alloc_record segment(uint64_t start, uint64_t bytes, bool torch)
{
	return (struct gm_alloc_record){.key = start,
					.bytes = bytes,
					.site = GM_NONE,
					.space = GM_SPACE_POINTER,
					.kind = GM_KIND_DEVICE,
					.flags = torch ? GM_ALLOC_TORCH : 0};
}

static struct gm_alloc_record mapping(uint64_t start, uint64_t bytes, bool torch)
{
	return (struct gm_alloc_record){.key = start,
					.bytes = bytes,
					.site = GM_NONE,
					.space = GM_SPACE_MAPPING,
					.flags = torch ? GM_ALLOC_TORCH : 0};
}

static struct gm_alloc_record reservation(uint64_t start, uint64_t bytes)
{
	return (struct gm_alloc_record){
		.key = start, .bytes = bytes, .site = GM_NONE, .space = GM_SPACE_RESERVATION};
}

static struct gm_holes holes_of(const struct gm_alloc_record *allocs, unsigned count,
				enum gm_holes_level level, struct gm_pinner *pinners)
{
	struct gm_extent *extents = calloc(2 * count + 1, sizeof(*extents));
	struct gm_holes holes;
	unsigned found = 0;

	assert_non_null(extents);
	for (unsigned i = 0; i < count; i++)
		found += gm_extents_of(&allocs[i], level, extents + found);
	gm_extents_sort(extents, found);
	holes = gm_holes_of(extents, found, pinners);
	free(extents);
	return holes;
}

#define HOLES(level, pinners, ...)                                                                 \
	holes_of((const struct gm_alloc_record[]){__VA_ARGS__},                                    \
		 sizeof((const struct gm_alloc_record[]){__VA_ARGS__}) /                           \
			 sizeof(struct gm_alloc_record),                                           \
		 level, pinners)

/* 20 MiB with blocks of 4 MiB at 0 and 8; 2 MiB without a block; 512 MiB that a library mapped. */
static void who_took_it_decides(void **unused)
{
	struct gm_holes holes;

	(void)unused;
	holes = HOLES(GM_HOLES_TORCH, NULL, segment(100 * MIB, 20 * MIB, true),
		      block(100 * MIB, 4 * MIB, 0), block(108 * MIB, 4 * MIB, 0),
		      segment(200 * MIB, 2 * MIB, true), mapping(1000 * MIB, 512 * MIB, false));
	assert_int_equal(holes.segments, 2);
	assert_int_equal(holes.reserved_bytes, 22 * MIB);
	assert_int_equal(holes.used_bytes, 8 * MIB);
	assert_int_equal(holes.largest_bytes, 8 * MIB); /* 112 to 120 */
	assert_int_equal(holes.releasable_bytes, 2 * MIB);
	assert_int_equal(holes.split_bytes, 12 * MIB);
	/* A block tells too, where the call was not seen. */
	holes = HOLES(GM_HOLES_TORCH, NULL, segment(100 * MIB, 20 * MIB, false),
		      block(100 * MIB, 4 * MIB, 0));
	assert_int_equal(holes.reserved_bytes, 20 * MIB);
	assert_int_equal(holes.largest_bytes, 16 * MIB);
	/* Memory that is full has no hole; none at all neither. */
	holes = HOLES(GM_HOLES_TORCH, NULL, segment(0, 2 * MIB, true), block(0, 2 * MIB, 0));
	assert_int_equal(holes.segments, 1);
	assert_int_equal(holes.largest_bytes, 0);
	holes = HOLES(GM_HOLES_TORCH, NULL, segment(0, 2 * MIB, false));
	assert_int_equal(holes.segments, 0);
}

/* Mappings that follow each other are one segment, and a block goes across them; but not into other
 * addresses. */
static void expandable_segments(void **unused)
{
	struct gm_holes holes;

	(void)unused;
	holes = HOLES(GM_HOLES_TORCH, NULL, reservation(0, 100 * MIB), mapping(0, 20 * MIB, true),
		      mapping(20 * MIB, 20 * MIB, true), mapping(40 * MIB, 20 * MIB, true),
		      block(10 * MIB, 25 * MIB, 0));
	assert_int_equal(holes.segments, 1);
	assert_int_equal(holes.used_bytes, 25 * MIB);
	assert_int_equal(holes.largest_bytes, 25 * MIB); /* 35 to 60 */
	assert_int_equal(holes.split_bytes, 0); /* is not given back in pieces that blocks leave */
	holes = HOLES(GM_HOLES_TORCH, NULL, reservation(0, 40 * MIB), mapping(0, 20 * MIB, true),
		      mapping(20 * MIB, 20 * MIB, true), reservation(40 * MIB, 40 * MIB),
		      mapping(40 * MIB, 20 * MIB, true), block(0, 10 * MIB, 0));
	assert_int_equal(holes.segments, 2);
	assert_int_equal(holes.largest_bytes, 30 * MIB);
	assert_int_equal(holes.releasable_bytes, 20 * MIB);
	/* A pointer's segment is not part of a neighbour. */
	holes = HOLES(GM_HOLES_TORCH, NULL, segment(0, 20 * MIB, true),
		      segment(20 * MIB, 20 * MIB, true));
	assert_int_equal(holes.largest_bytes, 20 * MIB);
}

/* Two sites keep segment 1 (12 MiB free), one keeps segment 2 (1 MiB free). */
static void who_keeps_them(void **unused)
{
	struct gm_pinner pinners[3] = {0};

	(void)unused;
	HOLES(GM_HOLES_TORCH, pinners, segment(0, 20 * MIB, true), block(0, 4 * MIB, 1),
	      block(8 * MIB, 2 * MIB, 2), block(12 * MIB, 2 * MIB, 2),
	      segment(40 * MIB, 2 * MIB, true), block(40 * MIB, MIB, 2),
	      segment(60 * MIB, 2 * MIB, true),
	      block(60 * MIB, 2 * MIB, 0) /* full: keeps no hole */);
	assert_int_equal(pinners[0].hole_bytes, 0);
	assert_int_equal(pinners[1].hole_bytes, 12 * MIB);
	assert_int_equal(pinners[1].blocks, 1);
	assert_int_equal(pinners[2].hole_bytes, 13 * MIB);
	assert_int_equal(pinners[2].blocks, 3);
	assert_int_equal(pinners[2].bytes, 5 * MIB);
}

/* Requests of at most 1 MiB share slabs of 2 MiB. */
static void slabs(void **unused)
{
	struct gm_alloc_record async = segment(14 * MIB, 512, false);
	struct gm_holes holes;

	(void)unused;
	async.kind = GM_KIND_ASYNC; /* from a pool */
	holes = HOLES(GM_HOLES_SLAB, NULL, segment(4 * MIB, MIB, false),
		      segment(5 * MIB + 1024, 100, false), segment(8 * MIB, MIB / 2, false),
		      segment(10 * MIB, 4 * MIB, false), async, block(8 * MIB, 512, 0));
	assert_int_equal(holes.segments, 2);
	assert_int_equal(holes.reserved_bytes, 4 * MIB);
	assert_int_equal(holes.used_bytes, MIB + 512 + MIB / 2);
	assert_int_equal(holes.largest_bytes, 2 * MIB - MIB / 2);
}

/* What a damaged file can hold is left out or cut. */
static void damage(void **unused)
{
	struct gm_holes holes;

	(void)unused;
	holes = HOLES(GM_HOLES_TORCH, NULL, segment(0, 20 * MIB, true),
		      segment(4 * MIB, 4 * MIB, true), block(0, 8 * MIB, 0),
		      block(4 * MIB, 8 * MIB, 0), block(16 * MIB, 40 * MIB, 0),
		      block(30 * MIB, MIB, 0), block(17 * MIB, UINT64_MAX - MIB, 0),
		      segment(UINT64_MAX - MIB, MIB, true));
	assert_int_equal(holes.segments, 1);
	assert_int_equal(holes.used_bytes, 12 * MIB);
	assert_int_equal(holes.largest_bytes, 8 * MIB);
}

/* ---- random layouts ---- */

#define CELLS	4000u
#define LAYOUTS 3000u

enum { NOTHING, FOREIGN, TAKEN };

static struct {
	uint8_t memory[CELLS + 1]; /* NOTHING, not PyTorch's, PyTorch's */
	bool begins[CELLS + 1];	   /* a segment does */
	bool fixed[CELLS];	   /* of a segment that is no mapping */
	bool used[CELLS];
} map;

static struct gm_alloc_record allocs[CELLS];
static unsigned allocs_count;

static unsigned pick(unsigned below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % below;
}

/* Memory of some cells with blocks in it; returns where it ends. */
static unsigned lay_segment(unsigned at)
{
	bool torch = pick(4) != 0, expandable = pick(2), blocks = torch && pick(4);
	unsigned end = at + 1 + pick(40), piece = 1 + pick(10);

	end = end < CELLS ? end : CELLS;
	map.begins[at] = true;
	if (expandable)
		allocs[allocs_count++] = reservation(at, end - at);
	else
		allocs[allocs_count++] = segment(at, end - at, torch);
	for (unsigned i = at; expandable && i < end; i += piece)
		allocs[allocs_count++] = mapping(i, end - i < piece ? end - i : piece, torch);
	for (unsigned i = at; i < end; i++) {
		map.memory[i] = torch ? TAKEN : FOREIGN;
		map.fixed[i] = !expandable;
	}
	for (unsigned i = at; blocks && i < end;) {
		unsigned bytes = 1 + pick(6);

		bytes = bytes < end - i ? bytes : end - i;
		if (pick(2)) {
			allocs[allocs_count++] = block(i, bytes, GM_NONE);
			memset(map.used + i, 1, bytes);
		}
		i += bytes;
	}
	return end;
}

/* Cell by cell: PyTorch's memory, what of it is used, and runs of what is not. */
static struct gm_holes count_cells(void)
{
	struct gm_holes holes = {0};
	uint64_t run = 0, free_cells = 0;
	bool any = false, fixed = false;

	for (unsigned i = 0; i <= CELLS; i++) {
		if (map.begins[i] || !map.memory[i]) {
			if (!any)
				holes.releasable_bytes += free_cells;
			else if (fixed)
				holes.split_bytes += free_cells;
			run = free_cells = 0;
			any = false;
		}
		if (map.memory[i] != TAKEN)
			continue;
		fixed = map.fixed[i];
		holes.segments += map.begins[i];
		holes.reserved_bytes++;
		holes.used_bytes += map.used[i];
		free_cells += !map.used[i];
		any |= map.used[i];
		run = map.used[i] ? 0 : run + 1;
		if (run > holes.largest_bytes)
			holes.largest_bytes = run;
	}
	return holes;
}

static void random_layouts(void **unused)
{
	(void)unused;
	for (unsigned n = 0; n < LAYOUTS; n++) {
		struct gm_holes expected, found;

		memset(&map, 0, sizeof(map));
		allocs_count = 0;
		for (unsigned at = 0; at < CELLS; at += pick(3) ? 0 : 1 + pick(5))
			at = lay_segment(at);
		for (unsigned i = allocs_count - 1; i > 0; i--) { /* in any order */
			unsigned other = pick(i + 1);
			struct gm_alloc_record moved = allocs[i];

			allocs[i] = allocs[other];
			allocs[other] = moved;
		}
		expected = count_cells();
		found = holes_of(allocs, allocs_count, GM_HOLES_TORCH, NULL);
		assert_int_equal(found.segments, expected.segments);
		assert_int_equal(found.reserved_bytes, expected.reserved_bytes);
		assert_int_equal(found.used_bytes, expected.used_bytes);
		assert_int_equal(found.largest_bytes, expected.largest_bytes);
		assert_int_equal(found.releasable_bytes, expected.releasable_bytes);
		assert_int_equal(found.split_bytes, expected.split_bytes);
		assert_true(found.largest_bytes <= found.reserved_bytes - found.used_bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_took_it_decides),
		cmocka_unit_test(expandable_segments),
		cmocka_unit_test(who_keeps_them),
		cmocka_unit_test(slabs),
		cmocka_unit_test(damage),
		cmocka_unit_test(random_layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
