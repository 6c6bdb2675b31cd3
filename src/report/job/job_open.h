/*
 * Opening the files of a job.
 */
#ifndef GM_REPORT_JOB_JOB_OPEN_H
#define GM_REPORT_JOB_JOB_OPEN_H

#include "report/doc/options.h"
#include "report/job/job.h"

/*
 * Opens the files in order of their ranks. A file that cannot be read is reported by `complain` and
 * left out; NULL if none could be read. The caller closes the job.
 */
struct gm_job *gm_job_open(char **paths, unsigned count, const struct gm_options *options,
			   void (*complain)(const char *sentence));
void gm_job_close(struct gm_job *job);

#endif
