/*
 * A row of holes: what a level of a device reserves beyond what is used, and by whom that is kept.
 */
#ifndef GM_REPORT_HOLES_HOLES_H
#define GM_REPORT_HOLES_HOLES_H

#include "report/holes/extents.h"

/* A row without anything in it. */
void gm_holes_begin(struct gm_fragmentation *row, int device, enum gm_holes_level level);

/*
 * Fills the row from sorted extents of its level; of PyTorch's level also the sites that keep
 * holes. The pinners lie in the document's zone.
 */
void gm_holes_fill(struct gm_doc *doc, const struct gm_extents *extents, enum gm_holes_level level,
		   struct gm_fragmentation *row);

#endif
