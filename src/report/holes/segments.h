/*
 * The segments of a device: the address ranges that PyTorch's allocator or a program's own pool
 * divides into blocks, as account/hole_walk.h finds them.
 */
#ifndef GM_REPORT_HOLES_SEGMENTS_H
#define GM_REPORT_HOLES_SEGMENTS_H

#include "report/holes/extents.h"

/* The segments in a list of extents of PyTorch's level, in order of address, in the document's
 * zone. */
struct gm_segment *gm_find_segments(struct gm_doc *doc, const struct gm_extents *extents,
				    unsigned *count);

/* The segment that holds an address, NULL. */
struct gm_segment *gm_segment_at(struct gm_segment *segments, unsigned count, uint64_t address);

#endif
