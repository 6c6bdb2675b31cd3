/*
 * Named ranges as text.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_RANGES_H
#define GM_REPORT_RENDER_TEXT_TEXT_RANGES_H

#include "report/doc/doc.h"
#include "report/render/text/text.h"

/* The table of ranges, names that differ only in numbers as one, with a heading; nothing if there
 * are none. */
void gm_text_range_table(struct gm_out *out, struct gm_doc *doc);

/* The table, and for each range its worst instances and the sites of what it left. */
void gm_text_ranges(struct gm_out *out, struct gm_doc *doc);

#endif
