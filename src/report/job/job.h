/*
 * Several files of one job: their documents side by side, what they sum up to, and what differs
 * between them.
 */
#ifndef GM_REPORT_JOB_JOB_H
#define GM_REPORT_JOB_JOB_H

#include "report/doc/doc.h"

/* A device of the job: what all its processes have there together, driver level. */
struct gm_job_total {
	struct gm_level_record level;
	const struct gm_doc *first; /* one of those that use it: knows its host, name and uuid */
	unsigned processes;
};

/*
 * Memory that its owner freed while another process had it open, so that the device did not get it
 * back: what was allocated, freed and opened at the same places, in one pair of processes.
 */
struct gm_freed_share {
	struct gm_doc *owner, *opener;
	const char *allocated_at, *freed_at, *opened_at; /* labels of the places, NULL */
	uint64_t bytes, distinct_bytes; /* the latter without what an earlier row has, too */
	uint64_t first_freed_ns;	/* of the owner's time */
	unsigned blocks;
	int device; /* the owner's number */
	uint8_t kind;
	bool by_size;	    /* the handle has no number: matched by device and size */
	bool while_working; /* the owner went on working after the free */
};

struct gm_job {
	struct gm_zone zone;
	const char *id; /* of the launcher; NULL: none, or not the same for all files */
	struct gm_job *parts; /* each job, where the files are of several: docs are compared
				 within them; worst findings first */
	unsigned parts_count;
	struct gm_symbols *symbols; /* of all files; NULL with --no-symbols */
	struct gm_doc **docs;	    /* by rank, then by path */
	unsigned count;
	bool several;	/* that were asked for, of which one alone may be readable */
	unsigned ranks; /* processes that count: those that are not superseded */
	struct gm_job_total *totals;
	unsigned totals_count;
	struct gm_freed_share *freed_shares; /* by owner and device, the largest first */
	unsigned freed_shares_count;
	struct gm_finding *findings;
	unsigned findings_count;
	struct gm_gate *gates; /* of all files together, from check */
	unsigned gates_count;
};

/* The order of a job's documents: below 0, 0 or above 0, as strcmp. */
int gm_compare_ranks(const struct gm_doc *a, const struct gm_doc *b);

/* True if the documents' devices of these numbers are the same one. */
bool gm_same_device(const struct gm_doc *a, int device_a, const struct gm_doc *b, int device_b);

/*
 * Says of documents in that order which are superseded; returns how many are not.
 *
 * A file is superseded, and counts neither in totals nor in what is compared, if a later attempt of
 * the same rank is there too (it began after this one ended: the same job id, or NAME.oldN of
 * NAME), or if it is a copy (NAME.snapN of NAME, a packed one of a file that is there too).
 */
unsigned gm_find_superseded(struct gm_doc *const *docs, unsigned count);

#endif
