/*
 * Gates for CI: limits that a run must keep (contract.md, `check`).
 */
#ifndef GM_REPORT_GATE_GATES_H
#define GM_REPORT_GATE_GATES_H

#include "report/doc/doc.h"

enum gm_leak_gate { GM_LEAKS_DEFAULT, GM_LEAKS_EXIT, GM_LEAKS_GROW, GM_LEAKS_OFF };

/* Limits are GM_NO_BYTES where none is set. */
struct gm_gate_options {
	enum gm_leak_gate leaks;
	uint64_t min_bytes;
	uint64_t max_peak_bytes, max_fragmentation_percent, max_retries, max_growth_bytes;
	uint64_t max_peak_growth_bytes,
		max_peak_growth_percent; /* over the baseline's; one of them */
	bool allow_oom, no_errors;
	bool per_mark; /* a gate for each mark but the first `warmup` */
	unsigned warmup;
};

/* No limits but those that are on by default. */
struct gm_gate_options gm_gate_defaults(void);

/* Fills the document's `gates[]`. With a baseline only what is worse than there counts. */
void gm_run_gates(struct gm_doc *doc, const struct gm_gate_options *options,
		  struct gm_doc *baseline);

/* The exit code of a list of gates: an OOM outranks a leak, a leak the others, those what could not
 * be judged. */
int gm_gates_exit(const struct gm_gate *gates, unsigned count);

#endif
