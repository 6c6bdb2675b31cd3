/*
 * The verdict whether a site leaks.
 */
#ifndef GM_REPORT_JUDGE_VERDICT_H
#define GM_REPORT_JUDGE_VERDICT_H

#include "report/doc/doc.h"

/* Fills every site's verdict and `why`. */
void gm_judge_sites(struct gm_doc *doc, unsigned warmup);

#endif
