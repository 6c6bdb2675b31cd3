/*
 * Growth of one thread among equal ones.
 */
#ifndef GM_REPORT_JUDGE_WORKERS_H
#define GM_REPORT_JUDGE_WORKERS_H

#include "report/doc/doc.h"

/* Changes the verdicts of such sites. After gm_judge_sites; reads the history of events. */
void gm_judge_workers(struct gm_doc *doc, unsigned warmup);

#endif
