/*
 * Several files: a row per process, and the whole.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_JOB_H
#define GM_REPORT_RENDER_TEXT_TEXT_JOB_H

#include "report/job/job.h"
#include "report/render/text/text.h"

void gm_text_ranks(struct gm_out *out, struct gm_job *job);
void gm_text_job(struct gm_out *out, struct gm_job *job);

#endif
