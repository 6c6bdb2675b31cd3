/*
 * Gates for CI: limits that a run must keep (contract.md, `check`).
 */
#ifndef GM_REPORT_GATE_GATES_H
#define GM_REPORT_GATE_GATES_H

#include "report/job/job.h"

enum gm_leak_gate { GM_LEAKS_DEFAULT, GM_LEAKS_EXIT, GM_LEAKS_GROW, GM_LEAKS_OFF };

/* Limits are GM_NO_BYTES where none is set. */
struct gm_gate_options {
	enum gm_leak_gate leaks;
	uint64_t min_bytes;
	uint64_t max_peak_bytes, max_fragmentation_percent, max_retries, max_growth_bytes;
	uint64_t max_peak_growth_bytes,
		max_peak_growth_percent; /* over the baseline's; one of them */
	bool allow_oom, no_errors;
	bool allow_unmeasured; /* a gate that was not measured does not fail the check */
	bool per_mark; /* a gate for each mark but the first `warmup` */
	unsigned warmup;
};

/* No limits but those that are on by default. */
struct gm_gate_options gm_gate_defaults(void);

/* Fills the document's `gates[]`. With a baseline only what is worse than there counts. */
void gm_run_gates(struct gm_doc *doc, const struct gm_gate_options *options,
		  struct gm_doc *baseline);

static inline bool gm_gate_failed(const struct gm_gate *gate)
{
	return !gate->passed && !gate->unmeasured;
}

/*
 * Fills the job's gates from its documents': one that failed in any file failed, else it was not
 * measured if any file's books are incomplete. A file that has nothing to measure (a device that
 * only other ranks use) leaves it to the others.
 */
void gm_gather_gates(struct gm_job *job);

/* The gates that the options ask for, where no file is there to measure; `why` is a clause. */
void gm_gates_without_file(struct gm_job *job, const struct gm_gate_options *options,
			   struct gm_doc *baseline, const char *why);

/* The exit code of a list of gates: an OOM outranks a leak, a leak the others, those what was not
 * measured. */
int gm_gates_exit(const struct gm_gate *gates, unsigned count);

#endif
