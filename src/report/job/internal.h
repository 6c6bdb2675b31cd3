/*
 * Functions that the judges of a job share: adding a finding, naming processes. Texts live in the
 * job's zone.
 */
#ifndef GM_REPORT_JOB_INTERNAL_H
#define GM_REPORT_JOB_INTERNAL_H

#include "report/job/job.h"

/* Comparing the processes of a job that count; each adds its findings. */
void gm_job_judge(struct gm_job *job);	      /* imbalance, stray contexts, the first to fail */
void gm_job_judge_shares(struct gm_job *job); /* memory that one process has of another */

/* The findings of the processes, the same one of many told once, behind those of the job. */
void gm_job_gather(struct gm_job *job);

struct gm_finding *gm_job_finding_new(struct gm_job *job, const char *id, enum gm_severity severity,
				      int device, uint64_t bytes);
void gm_job_advise(struct gm_job *job, struct gm_finding *finding, const char *advice);

#define gm_job_printf(job, ...) gm_zone_printf(&(job)->zone, __VA_ARGS__)
const char *gm_job_size(struct gm_job *job, uint64_t bytes);

/* "rank 3", or the pid where there are no ranks. */
const char *gm_job_who(struct gm_job *job, const struct gm_doc *doc);

/* "rank 0, rank 3"; of many "ranks 0-6, 9 (8 of 16)". Also fills the finding's ranks. */
const char *gm_job_name_ranks(struct gm_job *job, struct gm_finding *finding,
			      const struct gm_doc *const *docs, unsigned count);

#endif
