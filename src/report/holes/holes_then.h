/*
 * Holes at the peak and at an out-of-memory event.
 */
#ifndef GM_REPORT_HOLES_HOLES_THEN_H
#define GM_REPORT_HOLES_HOLES_THEN_H

#include "report/doc/doc.h"

/*
 * Returns the row of the same level when most of the level was used; NULL if that is not known, as
 * of a moment of the past (--at). In the zone.
 */
const struct gm_fragmentation *gm_holes_at_peak(struct gm_doc *doc,
						const struct gm_fragmentation *now);

/* The holes of each level at an out-of-memory event, as `holes` of the event, and
 * `torch_largest_hole_bytes` of its record where the shim did not fill it. */
void gm_load_oom_levels(struct gm_doc *doc, struct gm_oom *oom);

#endif
