/*
 * The output of `fragmentation`.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_HOLES_H
#define GM_REPORT_RENDER_TEXT_TEXT_HOLES_H

#include "report/doc/doc.h"
#include "report/render/text/text.h"

void gm_text_fragmentation(struct gm_out *out, struct gm_doc *doc);

/* Prints the part of the summary that is about holes. */
void gm_text_holes(struct gm_out *out, struct gm_doc *doc);

#endif
