/*
 * The page: the viewer's template (viewer/, built into the tool) with the document of --json in it,
 * and beside it what only pictures need (page_parts.h).
 */
#ifndef GM_REPORT_RENDER_HTML_H
#define GM_REPORT_RENDER_HTML_H

#include "report/job.h"
#include <stdio.h>

/* NULL if the tool has the template, else a sentence: why it has none and how to get it. */
const char *gm_html_lacks(void);

/* Writes the page of the job's files; 0 or -errno. */
int gm_html_write(struct gm_job *job, FILE *out);

#endif
