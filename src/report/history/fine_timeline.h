/*
 * The timeline from the complete history: GM_TIMELINE_POINTS equal stretches over the whole run, or
 * up to --at, where the tracker's own, kept while the run's length was not known, can be half as
 * many.
 */
#ifndef GM_REPORT_HISTORY_FINE_TIMELINE_H
#define GM_REPORT_HISTORY_FINE_TIMELINE_H

#include "report/doc/doc.h"

/* Replaces the series of allocations in `doc->timeline`; nothing without a complete history. */
void gm_timeline_refine(struct gm_doc *doc);

#endif
