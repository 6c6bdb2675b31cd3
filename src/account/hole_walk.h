/*
 * Holes: what is free inside memory that an allocator reserved and divides. One walk serves every
 * moment (now, at the peak, at an out-of-memory event, in an imported snapshot) and every level
 * (the segments of PyTorch's caching allocator, the slabs that the driver cuts small requests
 * from): a caller describes what was there as extents, and the walk adds up segments, holes and who
 * keeps them.
 *
 * For readers. The functions allocate nothing, change nothing but what they are given, and need no
 * lock. Addresses and sizes are bytes; `end` is one past the last byte.
 */
#ifndef GM_ACCOUNT_HOLE_WALK_H
#define GM_ACCOUNT_HOLE_WALK_H

#include "store/layout.h"

#include <stdbool.h>

/*
 * The role of an extent. Of extents that start at the same address the one that holds the others
 * comes first.
 */
enum gm_extent_role {
	GM_EXTENT_RESERVATION, /* reserved addresses: no segment goes on beyond where another range
				  starts */
	GM_EXTENT_SEGMENT,     /* memory that can be divided into blocks */
	GM_EXTENT_MAPPING,     /* the same; adjacent mappings are one expandable segment */
	GM_EXTENT_BLOCK,       /* in use, by the allocator whose holes are looked for */
	GM_EXTENT_POOL_BLOCK   /* in use, by a program's own pool */
};

/* A stretch of addresses of one device. */
struct gm_extent {
	uint64_t start, end;
	uint32_t site;	 /* of a block; GM_NONE: not known */
	uint32_t number; /* the caller's own */
	uint8_t role;	 /* enum gm_extent_role */
	bool owned; /* A segment or mapping: the allocator took it, so it counts without a block in
		       it too. */
};

/*
 * Lists the extents of an allocation as a level of holes sees it, and returns their number.
 * PyTorch's level has one extent at most; slabs have two, the slab and the part of it that is in
 * use.
 */
unsigned gm_extents_of(const struct gm_alloc_record *alloc, enum gm_holes_level level,
		       struct gm_extent extents[2]);

/* Puts extents into the order that the walk needs. */
void gm_extents_sort(struct gm_extent *extents, unsigned count);

/* A segment, with the extents that lie in it: numbers `first` to `past` - 1, among others that do
 * not count. */
struct gm_segment {
	uint64_t start, end;
	uint64_t used_bytes; /* by blocks */
	unsigned first, past;
	bool expandable;
	bool owned;  /* by the allocator whose holes are looked for: it took the segment, or a block
			lies in it */
	bool pooled; /* A block of a program's own pool lies in it. */
};

/* The next segment of sorted extents, in order of address; `segment` is zero-initialised at first.
 * False after the last one. */
bool gm_segment_next(const struct gm_extent *extents, unsigned count, struct gm_segment *segment);

/* A walk through a segment: what follows the last stretch. Begins as {.at = segment->first,
 * .address = segment->start}. */
struct gm_hole_walk {
	unsigned at;
	uint64_t address;
};

/* A part of a segment: a block, or a hole, of which `block` is NULL. */
struct gm_stretch {
	const struct gm_extent *block;
	uint64_t start, end;
};

/* The next stretch, in order of address; they cover the segment. Blocks that overlap others are
 * left out, blocks that go on beyond the segment are cut. False after the last one. */
bool gm_stretch_next(const struct gm_extent *extents, const struct gm_segment *segment,
		     struct gm_hole_walk *walk, struct gm_stretch *stretch);

/* A site whose blocks keep segments from being given back. */
struct gm_pinner {
	uint32_t site;
	uint64_t blocks, bytes; /* in segments that have holes */
	uint64_t hole_bytes;	/* free in these segments, each counted once */
	unsigned segment;	/* number of the last segment counted */
};

/* The sums over a level's segments: free are the reserved bytes that are not used. */
struct gm_holes {
	unsigned segments;
	uint64_t reserved_bytes, used_bytes;
	uint64_t largest_bytes;	   /* the largest hole */
	uint64_t releasable_bytes; /* free in segments without a block */
	uint64_t split_bytes;	   /* free in segments with blocks, expandable ones left out */
};

/*
 * Adds a segment to the sums, if it is owned. `pinners` has a zero-initialised element for each
 * site, to which the segment's free bytes are charged; NULL: nobody asks.
 */
void gm_holes_add(struct gm_holes *holes, const struct gm_extent *extents,
		  const struct gm_segment *segment, struct gm_pinner *pinners);

/* The sums over all segments of sorted extents. */
struct gm_holes gm_holes_of(const struct gm_extent *extents, unsigned count,
			    struct gm_pinner *pinners);

#endif
