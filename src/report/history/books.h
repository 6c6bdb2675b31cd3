/*
 * The tracker's books, kept again by the report while a history is played: sites, levels, usage,
 * PyTorch's and virtual memory's figures, by the tracker's own rules (src/track), so that they
 * equal what the tracker had at that moment.
 */
#ifndef GM_REPORT_HISTORY_BOOKS_H
#define GM_REPORT_HISTORY_BOOKS_H

#include "report/doc/doc.h"
#include "report/journal/replay.h"

#define GM_BOOK_DEVICES 65 /* the host, and as many as the tracker tells apart */

struct gm_books {
	struct gm_site_record *sites; /* by number, as many as the document has */
	uint32_t sites_count;
	struct gm_level_record levels[GM_BOOK_DEVICES][GM_LEVELS];
	bool levels_used[GM_BOOK_DEVICES][GM_LEVELS];
	struct gm_usage_record usage[GM_BOOK_DEVICES][GM_KINDS];
	struct gm_torch_record torch[GM_BOOK_DEVICES];
	struct gm_vmm_record vmm[GM_BOOK_DEVICES];
	bool torch_seen;
	uint64_t serial;	 /* of the last allocation */
	uint64_t window_from_ns; /* sites' windows[0] are those of the time from here on;
				    window_resets: touched */
};

/* Empty books for the document's sites, in its zone. */
struct gm_books *gm_books_new(struct gm_doc *doc);

/* Books a step, or what a call tells of; `time_ns` is the entry's. */
void gm_books_step(struct gm_books *books, const struct gm_replay_step *step, uint64_t time_ns);
void gm_books_call(struct gm_books *books, const struct gm_event_record *event);

/* What counts as PyTorch's reserve. */
bool gm_books_is_segment(const struct gm_alloc_record *alloc);

/* 0 the host, then the devices. */
unsigned gm_books_slot(int device);

#endif
