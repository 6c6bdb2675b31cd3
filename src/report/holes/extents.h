/*
 * Lists of extents for the walk that finds holes (account/hole_walk.h), from the live allocations
 * of a document or from what was live at another moment.
 */
#ifndef GM_REPORT_HOLES_EXTENTS_H
#define GM_REPORT_HOLES_EXTENTS_H

#include "report/doc/doc.h"

/* Zero-initialised is an empty list. Freed by gm_extents_free. */
struct gm_extents {
	struct gm_extent *list;
	unsigned count, room;
	uint64_t slab; /* the one added last: blocks in order of address add each slab once */
};

/*
 * Adds what an allocation is at a level of holes; `number` is the caller's own. Whether PyTorch's
 * allocator took memory is told by gm_by_torch. The list is then to be sorted (gm_extents_sort).
 */
void gm_extents_add(struct gm_extents *extents, const struct gm_doc *doc,
		    const struct gm_alloc_record *alloc, enum gm_holes_level level,
		    uint32_t number);

/* The live allocations of a device at the document's moment, sorted; numbers are those of
 * `doc->blocks`. */
struct gm_extents gm_extents_now(const struct gm_doc *doc, int device, enum gm_holes_level level);

/* The extents of the first `count` of the allocations that gm_work_block numbers, sorted. */
struct gm_extents gm_extents_first(const struct gm_doc *doc, unsigned count, int device,
				   enum gm_holes_level level);

/*
 * True if a segment that holds this allocation counts: it is a block, or the level's allocator took
 * it. Where no allocation does, the level has no segments.
 */
bool gm_extents_count(const struct gm_doc *doc, const struct gm_alloc_record *alloc,
		      enum gm_holes_level level);

void gm_extents_free(struct gm_extents *extents);

/*
 * PyTorch's caching allocator took the memory: the record says so (GM_ALLOC_TORCH), or the stack of
 * a process whose PyTorch was not watched. Without the cache, or with cudaMallocAsync in its place,
 * every tensor is an allocation, and nothing is divided.
 */
bool gm_by_torch(const struct gm_doc *doc, const struct gm_alloc_record *alloc);

#endif
