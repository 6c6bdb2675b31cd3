/*
 * The output of `timeline`.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_TIMELINE_H
#define GM_REPORT_RENDER_TEXT_TEXT_TIMELINE_H

#include "report/doc/doc.h"
#include "report/render/text/text.h"

void gm_text_timeline(struct gm_out *out, struct gm_doc *doc);

#endif
