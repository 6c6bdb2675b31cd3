/*
 * Driver memory of a device as address ranges: the segments that PyTorch's allocator or a program's
 * own pool divides into blocks, found in the live allocations, which are sorted by device and
 * address.
 */
#ifndef GM_REPORT_HOLES_SEGMENTS_H
#define GM_REPORT_HOLES_SEGMENTS_H

#include "report/doc/doc.h"

/* A stretch of memory: an allocation, or adjacent mappings of an expandable segment. */
struct gm_segment {
	uint64_t start, end;
	bool expandable;
	bool torch, custom;  /* whose blocks are in it */
	uint64_t used_bytes; /* by PyTorch's blocks */
};

/* Memory of the driver that can be divided. */
bool gm_is_segment(const struct gm_alloc_record *block);
bool gm_is_torch_block(const struct gm_alloc_record *block);

/* PyTorch's allocator took it: the shim says so, or the stack of a shim that watched no PyTorch. */
bool gm_by_torch(const struct gm_doc *doc, const struct gm_alloc_record *block);

/* The segments of a device in order of address, in the document's zone. */
struct gm_segment *gm_find_segments(struct gm_doc *doc, int device, unsigned *count);

/* The segment that holds an address, NULL. */
struct gm_segment *gm_segment_at(struct gm_segment *segments, unsigned count, uint64_t address);

/* Number of the first block of a device at or after an address. */
unsigned gm_first_block(const struct gm_doc *doc, int device, uint64_t address);

#endif
