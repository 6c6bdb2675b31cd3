/*
 * What `holders` prints.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_HOLDERS_H
#define GM_REPORT_RENDER_TEXT_TEXT_HOLDERS_H

#include "report/doc/doc.h"
#include "report/render/text/text.h"

void gm_text_holders(struct gm_out *out, struct gm_doc *doc);

#endif
