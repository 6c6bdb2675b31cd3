/*
 * Other settings of PyTorch's allocator as text.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_WHATIF_H
#define GM_REPORT_RENDER_TEXT_TEXT_WHATIF_H

#include "report/render/text/text.h"
#include "report/whatif/whatif.h"

/* `gpu` is the smallest GPU that would do with the best setting, NULL. */
void gm_text_whatif(struct gm_out *out, struct gm_doc *doc, const struct gm_whatif *whatif,
		    const char *gpu);

#endif
