/*
 * The output of `oom`.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_EVENTS_H
#define GM_REPORT_RENDER_TEXT_TEXT_EVENTS_H

#include "report/doc/doc.h"
#include "report/render/text/text.h"

void gm_text_ooms(struct gm_out *out, struct gm_doc *doc);

#endif
