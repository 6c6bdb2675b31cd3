/*
 * Several files: the whole, and a row per process.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_JOB_H
#define GM_REPORT_RENDER_TEXT_TEXT_JOB_H

#include "report/job/job.h"
#include "report/render/text/text.h"

/*
 * The whole: what the devices hold, the findings, and a row for each process; of files of several
 * jobs each job by itself, worst findings first.
 */
void gm_text_job(struct gm_out *out, struct gm_job *job);

/*
 * The documents in the order in which they are shown, in the job's zone: by rank, or the worst
 * first where there are more than `out->top`. Returns how many are shown.
 */
unsigned gm_text_order(struct gm_out *out, struct gm_job *job, struct gm_doc ***docs);

#endif
