/*
 * Two runs side by side: which sites grew, shrank, appeared, vanished, and by what measure.
 */
#ifndef GM_REPORT_GATE_COMPARE_H
#define GM_REPORT_GATE_COMPARE_H

#include "report/job/job.h"

/* The figure of a site that is compared. */
enum gm_measure {
	GM_MEASURE_LIVE,	/* bytes */
	GM_MEASURE_PEAK,	/* bytes, the most that the site held at a time */
	GM_MEASURE_AT_PEAK,	/* bytes that it held when its device's level was at its peak */
	GM_MEASURE_ALLOCATED,	/* bytes, freed ones too: churn */
	GM_MEASURE_ALLOCATIONS, /* their number */
	GM_MEASURE_TIME,	/* nanoseconds from the first to the last allocation */
	GM_MEASURES
};

struct gm_change {
	const char *key;
	struct gm_doc *doc; /* of the example that counts: new_site, else old_site */
	const struct gm_site *old_site,
		*new_site; /* one of them may be NULL; examples of their key */
	/* By measure. A side without the site has 0, GM_NO_BYTES is not known. */
	uint64_t before[GM_MEASURES], after[GM_MEASURES];
};

/*
 * Returns the text by which a site is found again: kind, level, device and the functions of its
 * stack without lines and addresses, so that the same place is found in another build. In the
 * document's zone.
 */
const char *gm_site_key(struct gm_doc *doc, const struct gm_site *site);

/*
 * The changes from one job to the other, largest difference of live bytes first, then of the other
 * measures. Sites of one key are summed, over all processes. The list lives in the new job's zone.
 */
struct gm_change *gm_compare_jobs(struct gm_job *old_job, struct gm_job *new_job, unsigned *count);

/*
 * Returns the changes from one file to another; the list lives in the new one's zone and points
 * into both.
 */
struct gm_change *gm_compare_docs(struct gm_doc *old_doc, struct gm_doc *new_doc, unsigned *count);

/* Sorts changes: the largest difference of that measure first. */
void gm_sort_changes(struct gm_change *changes, unsigned count, enum gm_measure measure);

/*
 * True if the measure differs. Times differ by chance: theirs count from a millisecond and a tenth
 * of the longer on. False if a side is not known.
 */
bool gm_change_differs(const struct gm_change *change, enum gm_measure measure);

/* "grew", "shrank", "appeared", "vanished", "same": what became of the live bytes. */
const char *gm_change_name(const struct gm_change *change);

#endif
