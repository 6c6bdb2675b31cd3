/*
 * The output of `summary`, and findings.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_SUMMARY_H
#define GM_REPORT_RENDER_TEXT_TEXT_SUMMARY_H

#include "report/doc/doc.h"
#include "report/render/text/text.h"

/* `quiet`: the findings alone. */
void gm_text_summary(struct gm_out *out, struct gm_doc *doc, bool quiet);

/* Findings with their advice; those that repeat a growth finding of the same site are left out. */
void gm_text_findings(struct gm_out *out, const struct gm_finding *findings, unsigned count);

#endif
