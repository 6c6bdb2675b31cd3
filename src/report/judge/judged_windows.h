/*
 * The windows in which sites are judged: the shim's own, or, where a few marks have made them too
 * few to judge by, stretches of equal work that are counted anew from the history of events.
 */
#ifndef GM_REPORT_JUDGE_JUDGED_WINDOWS_H
#define GM_REPORT_JUDGE_JUDGED_WINDOWS_H

#include "report/doc/doc.h"

struct gm_judged_windows {
	bool marks;    /* they are stretches between marks */
	unsigned open; /* number of the last one */
	uint64_t start_ns[GM_WINDOWS];
	struct gm_window (*of)[GM_WINDOWS]; /* by site; NULL: the sites have them */
};

/*
 * Returns the windows of the document's sites. `phases`: the marks are too few to divide the run
 * into steps. The windows of sites are allocated in the document's zone.
 */
struct gm_judged_windows gm_find_judged_windows(struct gm_doc *doc, bool phases);

/*
 * Counts anew, from the history of events, the windows of what these sites hold together: windows'
 * `of` has one entry, in the document's zone. Returns false if the history does not reach back to
 * the start of the run.
 */
bool gm_count_windows_of_all(struct gm_doc *doc, const uint32_t *sites, unsigned count,
			     struct gm_judged_windows *windows);

/* Returns the number of the window in which something of that time lies. */
unsigned gm_window_at(const struct gm_judged_windows *windows, uint64_t time_ns);

/* Returns one of the site's windows, up to `open`, as it is recorded. */
struct gm_window gm_recorded_window(const struct gm_judged_windows *windows,
				    const struct gm_doc *doc, const struct gm_site *site,
				    unsigned window);

/*
 * Puts the site's windows, as they were at the end of the work, into `found`, and returns the
 * number of the last one in which it has values of its own.
 */
unsigned gm_windows_of(const struct gm_judged_windows *windows, const struct gm_doc *doc,
		       const struct gm_site *site, struct gm_window found[GM_WINDOWS]);

#endif
