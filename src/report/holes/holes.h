/*
 * Where memory is reserved beyond what is used, per level, and by whom that is kept: now (holes.c),
 * at the peak and at an out-of-memory event (holes_then.c). Internal to the report.
 */
#ifndef GM_REPORT_HOLES_HOLES_H
#define GM_REPORT_HOLES_HOLES_H

#include "report/holes/segments.h"

/* A row without anything in it. */
void gm_holes_begin(struct gm_fragmentation *row, int device, enum gm_holes_level level);

/* Adds up what the blocks of the document show: PyTorch's segments, slabs. */
void gm_sum_torch_holes(struct gm_doc *doc, struct gm_segment *segments, unsigned count,
			struct gm_fragmentation *row);
void gm_sum_slab_holes(const struct gm_doc *doc, struct gm_fragmentation *row);

#endif
