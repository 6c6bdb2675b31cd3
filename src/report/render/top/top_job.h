/*
 * The screen of `top` for several processes.
 */
#ifndef GM_REPORT_RENDER_TOP_TOP_JOB_H
#define GM_REPORT_RENDER_TOP_TOP_JOB_H

#include "report/render/top/top.h"

/*
 * Prints as gm_top_lines, for several processes: the whole, then a row for each process and device.
 * `like` has the choice of what is shown, and no sites here.
 */
void gm_top_job_lines(const struct gm_top_process *processes, unsigned count,
		      const struct gm_top *like, unsigned width, unsigned height,
		      void (*emit)(void *data, enum gm_style style, const char *line), void *data);

#endif
