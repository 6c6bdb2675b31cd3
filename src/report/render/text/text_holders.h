/*
 * The output of `holders`.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_HOLDERS_H
#define GM_REPORT_RENDER_TEXT_TEXT_HOLDERS_H

#include "report/doc/doc.h"
#include "report/render/text/text.h"

void gm_text_holders(struct gm_out *out, struct gm_doc *doc);

/*
 * Prints the holders if the shim had looked for them; else, of a Python program with a leak or an
 * out-of-memory event, how to find them.
 */
void gm_text_stored_holders(struct gm_out *out, struct gm_doc *doc);

#endif
