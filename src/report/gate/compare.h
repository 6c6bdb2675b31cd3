/*
 * Two runs side by side: which sites grew, shrank, appeared, vanished.
 */
#ifndef GM_REPORT_GATE_COMPARE_H
#define GM_REPORT_GATE_COMPARE_H

#include "report/job/job.h"

struct gm_change {
	const char *key;
	struct gm_doc *doc; /* of the example that counts: new_site, else old_site */
	const struct gm_site *old_site,
		*new_site;	       /* one of them may be NULL; examples of their key */
	uint64_t old_bytes, new_bytes; /* live */
	uint64_t old_peak_bytes, new_peak_bytes;
	uint64_t old_count, new_count; /* allocations */
};

/*
 * What a site reads like: kind, level, device and the functions of its stack without lines and
 * addresses, so that the same place is found again in another build. In the document's zone.
 */
const char *gm_site_key(struct gm_doc *doc, const struct gm_site *site);

/*
 * The changes from one job to the other, largest difference of live bytes first. Sites of one key
 * are summed, over all processes. The list lives in the new job's zone.
 */
struct gm_change *gm_compare_jobs(struct gm_job *old_job, struct gm_job *new_job, unsigned *count);

/* "grew", "shrank", "appeared", "vanished", "same" */
const char *gm_change_name(const struct gm_change *change);

#endif
