/*
 * The largest hole in PyTorch's segments at an out-of-memory event.
 */
#ifndef GM_REPORT_HOLES_OOM_HOLES_H
#define GM_REPORT_HOLES_OOM_HOLES_H

#include "report/doc/doc.h"

/* Fills the event's `torch_largest_hole_bytes` from the blocks that were live then. */
void gm_load_oom_hole(struct gm_doc *doc, struct gm_oom *oom);

#endif
