/*
 * The output of `sites` and `leaks`.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_SITES_H
#define GM_REPORT_RENDER_TEXT_TEXT_SITES_H

#include "report/doc/doc.h"
#include "report/render/text/text.h"

void gm_text_leaks(struct gm_out *out, struct gm_doc *doc, bool all);

/* False if there is no sort key of that name. */
bool gm_text_sites(struct gm_out *out, struct gm_doc *doc, const char *sort, bool at_peak);

/* Names of the keys that `sites --sort` knows, for messages: "live, peak, total, count, churn". */
const char *gm_sort_keys(void);

#endif
