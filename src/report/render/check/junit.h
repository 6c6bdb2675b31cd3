/*
 * Gates as JUnit XML.
 */
#ifndef GM_REPORT_RENDER_CHECK_JUNIT_H
#define GM_REPORT_RENDER_CHECK_JUNIT_H

#include "report/job/job.h"
#include <stdio.h>

/* JUnit XML: a test case per gate and file. 0 or -errno. */
int gm_junit_write(const struct gm_job *job, FILE *file);

#endif
