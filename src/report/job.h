/*
 * Several files of one job: their documents side by side, what they sum up to, and what differs
 * between them.
 */
#ifndef GM_REPORT_JOB_H
#define GM_REPORT_JOB_H

#include "report/doc.h"

struct gm_job {
	struct gm_arena arena;
	struct gm_doc **docs;
	unsigned count;
	struct gm_level_record *totals; /* driver level, of the same device of every process */
	unsigned totals_count;
	struct gm_finding *findings;
	unsigned findings_count;
	struct gm_gate *gates; /* of all files together, from check */
	unsigned gates_count;
};

/*
 * Opens the files in order of their ranks. A file that cannot be read is reported by `complain` and
 * left out; NULL if none could be read. The caller frees the job.
 */
struct gm_job *gm_job_open(char **paths, unsigned count, const struct gm_options *options,
			   void (*complain)(const char *sentence));
void gm_job_free(struct gm_job *job);

#endif
