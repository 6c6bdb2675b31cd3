/*
 * The segments of a device: the address ranges that PyTorch's allocator or a program's own pool
 * divides into blocks, as account/hole_walk.h finds them.
 */
#ifndef GM_REPORT_HOLES_SEGMENTS_H
#define GM_REPORT_HOLES_SEGMENTS_H

#include "report/holes/extents.h"

/*
 * Returns the segments in a list of extents of PyTorch's level, in order of address. The caller
 * frees the list, which may be as long as the blocks of a device are many.
 */
struct gm_segment *gm_find_segments(const struct gm_extents *extents, unsigned *count);

/* The segment that holds an address, NULL. */
struct gm_segment *gm_segment_at(struct gm_segment *segments, unsigned count, uint64_t address);

#endif
