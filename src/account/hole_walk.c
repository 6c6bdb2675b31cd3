/*
 * See hole_walk.h. Calls qsort and nothing else.
 */
#include "account/hole_walk.h"
#include "account/sizes.h"
#include "account/torch_record.h"

#include <stdlib.h>

/* ---- extents ---- */

/* Finds the role of an allocation in the holes of PyTorch's level; false if it has none. */
static bool torch_role(const struct gm_alloc_record *alloc, uint8_t *role)
{
	if (alloc->level == GM_LEVEL_CUSTOM)
		*role = GM_EXTENT_POOL_BLOCK;
	else if (alloc->level == GM_LEVEL_TORCH && alloc->space == GM_SPACE_TORCH)
		*role = GM_EXTENT_BLOCK;
	else if (alloc->space == GM_SPACE_RESERVATION)
		*role = GM_EXTENT_RESERVATION;
	else if (gm_is_divisible(alloc))
		*role = alloc->space == GM_SPACE_MAPPING ? GM_EXTENT_MAPPING : GM_EXTENT_SEGMENT;
	else
		return false;
	return true;
}

/*
 * Finds the role of an allocation in the holes of a program's own pool; false if it has none.
 * Memory counts where a block of the pool lies in it.
 */
static bool custom_role(const struct gm_alloc_record *alloc, uint8_t *role)
{
	if (alloc->level == GM_LEVEL_CUSTOM)
		*role = GM_EXTENT_BLOCK;
	else if (alloc->space == GM_SPACE_RESERVATION)
		*role = GM_EXTENT_RESERVATION;
	else if (gm_is_divisible(alloc))
		*role = alloc->space == GM_SPACE_MAPPING ? GM_EXTENT_MAPPING : GM_EXTENT_SEGMENT;
	else
		return false;
	return true;
}

unsigned gm_extents_of(const struct gm_alloc_record *alloc, enum gm_holes_level level,
		       struct gm_extent extents[2])
{
	const uint64_t most = UINT64_MAX - GM_SLAB_BYTES;
	struct gm_extent extent = {.start = alloc->key, .site = alloc->site};

	if (alloc->key > most || alloc->bytes > most - alloc->key) /* damage */
		return 0;
	if (level == GM_HOLES_TORCH && torch_role(alloc, &extent.role)) {
		extent.end = alloc->key + alloc->bytes;
		extent.owned = gm_torch_part(alloc) == GM_TORCH_SEGMENT;
		extents[0] = extent;
		return 1;
	}
	if (level == GM_HOLES_CUSTOM && custom_role(alloc, &extent.role)) {
		extent.end = alloc->key + alloc->bytes;
		extents[0] = extent;
		return 1;
	}
	if (level == GM_HOLES_SLAB && gm_in_slab(alloc) && alloc->bytes) {
		extent.end = alloc->key + gm_round_units(alloc->bytes);
		extent.role = GM_EXTENT_BLOCK;
		extents[0] = (struct gm_extent){.start = gm_slab_of(alloc->key),
						.end = gm_slab_of(alloc->key) + GM_SLAB_BYTES,
						.site = GM_NONE,
						.role = GM_EXTENT_SEGMENT,
						.owned = true};
		extents[1] = extent;
		return 2;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct gm_extent *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

void gm_extents_sort(struct gm_extent *extents, unsigned count)
{
	unsigned i = 1;

	while (i < count && compare(&extents[i - 1], &extents[i]) <= 0)
		i++;
	if (i < count)
		qsort(extents, count, sizeof(*extents), compare);
}

/* ---- segments ---- */

static bool is_memory(const struct gm_extent *extent)
{
	return extent->role == GM_EXTENT_SEGMENT || extent->role == GM_EXTENT_MAPPING;
}

/* A mapping that starts where the last one ended, unless another range of reserved addresses begins
 * there. */
static bool goes_on(const struct gm_segment *segment, const struct gm_extent *extent,
		    uint64_t border)
{
	return segment->expandable && extent->role == GM_EXTENT_MAPPING &&
	       extent->start == segment->end && extent->start != border;
}

/*
 * Extends the segment at `first` over the mappings that go on from it, and finds what lies in it.
 */
static void gather(const struct gm_extent *extents, unsigned count, struct gm_segment *segment)
{
	uint64_t border = UINT64_MAX;
	unsigned i;

	for (i = segment->first + 1; i < count; i++) {
		const struct gm_extent *extent = &extents[i];

		if (extent->role == GM_EXTENT_RESERVATION) {
			border = extent->start;
		} else if (goes_on(segment, extent, border)) {
			segment->end = extent->end;
			segment->owned |= extent->owned;
		} else if (extent->start >= segment->end) {
			break; /* memory that overlaps is damage, or an address given out again just
				  now */
		} else {
			segment->owned |= extent->role == GM_EXTENT_BLOCK;
			segment->pooled |= extent->role == GM_EXTENT_POOL_BLOCK;
		}
	}
	segment->past = i;
}

bool gm_segment_next(const struct gm_extent *extents, unsigned count, struct gm_segment *segment)
{
	unsigned i = segment->past;
	struct gm_stretch stretch;
	struct gm_hole_walk walk;

	while (i < count && !is_memory(&extents[i]))
		i++;
	if (i == count)
		return false;
	*segment = (struct gm_segment){
		.start = extents[i].start,
		.end = extents[i].end,
		.first = i,
		.expandable = extents[i].role == GM_EXTENT_MAPPING,
		.owned = extents[i].owned,
	};
	gather(extents, count, segment);
	walk = (struct gm_hole_walk){segment->first, segment->start};
	while (gm_stretch_next(extents, segment, &walk, &stretch))
		if (stretch.block)
			segment->used_bytes += stretch.end - stretch.start;
	return true;
}

bool gm_stretch_next(const struct gm_extent *extents, const struct gm_segment *segment,
		     struct gm_hole_walk *walk, struct gm_stretch *stretch)
{
	const struct gm_extent *block = NULL;

	for (; walk->at < segment->past && !block; walk->at++)
		if (extents[walk->at].role == GM_EXTENT_BLOCK &&
		    extents[walk->at].start >= walk->address)
			block = &extents[walk->at];
	if (block && block->start == walk->address) {
		*stretch = (struct gm_stretch){
			block, block->start, block->end < segment->end ? block->end : segment->end};
	} else if (walk->address < segment->end) {
		*stretch = (struct gm_stretch){NULL, walk->address,
					       block ? block->start : segment->end};
		walk->at -= block != NULL; /* the block comes next */
	} else {
		return false;
	}
	walk->address = stretch->end;
	return true;
}

/* ---- sums ---- */

static void pin(struct gm_pinner *pinner, const struct gm_extent *block, unsigned segment,
		uint64_t free_bytes)
{
	pinner->site = block->site;
	pinner->blocks++;
	pinner->bytes += block->end - block->start;
	if (pinner->segment != segment)
		pinner->hole_bytes += free_bytes;
	pinner->segment = segment;
}

void gm_holes_add(struct gm_holes *holes, const struct gm_extent *extents,
		  const struct gm_segment *segment, struct gm_pinner *pinners)
{
	uint64_t free_bytes = segment->end - segment->start - segment->used_bytes;
	struct gm_hole_walk walk = {segment->first, segment->start};
	struct gm_stretch stretch;

	if (!segment->owned)
		return;
	holes->segments++;
	holes->reserved_bytes += segment->end - segment->start;
	holes->used_bytes += segment->used_bytes;
	if (!segment->used_bytes)
		holes->releasable_bytes += free_bytes;
	else if (!segment->expandable)
		holes->split_bytes += free_bytes;
	while (gm_stretch_next(extents, segment, &walk, &stretch)) {
		if (!stretch.block && stretch.end - stretch.start > holes->largest_bytes)
			holes->largest_bytes = stretch.end - stretch.start;
		if (stretch.block && stretch.block->site != GM_NONE && pinners && free_bytes)
			pin(&pinners[stretch.block->site], stretch.block, holes->segments,
			    free_bytes);
	}
}

struct gm_holes gm_holes_of(const struct gm_extent *extents, unsigned count,
			    struct gm_pinner *pinners)
{
	struct gm_segment segment = {0};
	struct gm_holes holes = {0};

	while (gm_segment_next(extents, count, &segment))
		gm_holes_add(&holes, extents, &segment, pinners);
	return holes;
}
