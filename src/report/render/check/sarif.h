/*
 * Failed gates as SARIF.
 */
#ifndef GM_REPORT_RENDER_CHECK_SARIF_H
#define GM_REPORT_RENDER_CHECK_SARIF_H

#include "report/job/job.h"
#include <stdio.h>

/* SARIF 2.1.0: a result per failed gate and site. 0 or -errno. */
int gm_sarif_write(const struct gm_job *job, FILE *file);

#endif
