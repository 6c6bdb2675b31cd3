/*
 * Gates as Markdown, for the summary of a CI job.
 */
#ifndef GM_REPORT_RENDER_CHECK_MARKDOWN_H
#define GM_REPORT_RENDER_CHECK_MARKDOWN_H

#include "report/job/job.h"
#include <stdio.h>

/* GitHub's Markdown: a table of the gates, then what broke them with its stacks. 0 or -errno. */
int gm_markdown_write(const struct gm_job *job, FILE *file);

#endif
