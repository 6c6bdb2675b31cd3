/*
 * The accounting of a history that is played: records of sites, levels, usage, PyTorch and virtual
 * memory, changed by the same functions (src/account) as the tracker's, so that they equal what the
 * tracker had at that moment.
 */
#ifndef GM_REPORT_HISTORY_BOOKS_H
#define GM_REPORT_HISTORY_BOOKS_H

#include "account/counters.h"
#include "report/doc/doc.h"
#include "report/journal/replay.h"

struct gm_books {
	struct gm_site_record *sites; /* by number, as many as the document has */
	uint32_t sites_count;
	struct gm_level_record levels[GM_SLOTS][GM_LEVELS];
	bool levels_used[GM_SLOTS][GM_LEVELS];
	struct gm_usage_record usage[GM_SLOTS][GM_KINDS];
	struct gm_torch_record torch[GM_SLOTS];
	struct gm_vmm_record vmm[GM_SLOTS];
	bool torch_seen;
	uint64_t serial;	 /* of the last allocation */
	uint32_t window;	 /* number of the open one */
	uint64_t window_from_ns; /* sites' windows[0] are those of the time from here on;
				    window_resets: touched */
	struct gm_header windows; /* of the file at a checkpoint: the numbers and beginnings */
};

/* Empty records for the document's sites, in its zone. */
struct gm_books *gm_books_new(struct gm_doc *doc);

/* The records that an allocation of this site (GM_NONE: none), device, level and kind counts in. */
struct gm_counters gm_books_counters(struct gm_books *books, uint32_t site, int device,
				     unsigned level, unsigned kind);

/* Opens the next window of all sites, which begins at that time. */
void gm_books_next_window(struct gm_books *books, uint64_t from_ns);

/* Counts a step, or what is known from a call; `time_ns` is the entry's. */
void gm_books_step(struct gm_books *books, const struct gm_replay_step *step, uint64_t time_ns);
void gm_books_call(struct gm_books *books, const struct gm_event_record *event);

#endif
