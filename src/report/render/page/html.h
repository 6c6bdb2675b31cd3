/*
 * The page: the viewer's template (viewer/, built into the tool) with the document of --json in it,
 * and beside it what only pictures need (internal.h).
 */
#ifndef GM_REPORT_RENDER_PAGE_HTML_H
#define GM_REPORT_RENDER_PAGE_HTML_H

#include "report/job/job.h"
#include <stdio.h>

/* By which a page is known, near its beginning. */
#define GM_HTML_MARK "<title>GPU memory</title>"

/* NULL if the tool has the template, else a sentence: why it has none and how to get it. */
const char *gm_html_lacks(void);

/*
 * Writes the page of the job's files; 0 or -errno. `paths` are the `count` files as they were
 * given: a comparison goes from the first to the second, whatever the order of their ranks and
 * names.
 */
int gm_html_write(struct gm_job *job, char *const *paths, unsigned count, FILE *out);

#endif
