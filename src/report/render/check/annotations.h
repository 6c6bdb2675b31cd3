/*
 * Failed gates at the lines of a change: as GitHub's workflow commands and as GitLab's code
 * quality.
 */
#ifndef GM_REPORT_RENDER_CHECK_ANNOTATIONS_H
#define GM_REPORT_RENDER_CHECK_ANNOTATIONS_H

#include "report/job/job.h"
#include <stdio.h>

/*
 * A line "::error title=...,file=...,line=...::message" for each result of a job, as a runner of
 * GitHub Actions reads it from a step's output; "::warning" for what was not measured, "::notice"
 * if that is allowed. 0 or -errno.
 */
int gm_github_write(const struct gm_job *job, FILE *file);

/*
 * The array of GitLab's code quality report: an entry per result, each fingerprint once. 0 or
 * -errno.
 */
int gm_gitlab_write(const struct gm_job *job, FILE *file);

#endif
