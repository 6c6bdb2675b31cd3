/*
 * Judging a loaded document whose sites have their verdicts (verdict.h): the findings, one file per
 * diagnosis. A judge reads the document and adds findings with the measured figures in them.
 */
#ifndef GM_REPORT_JUDGE_JUDGE_H
#define GM_REPORT_JUDGE_JUDGE_H

#include "report/doc/doc.h"

/* Runs all judges and sorts the findings, most severe first. */
void gm_judge(struct gm_doc *doc);

#endif
