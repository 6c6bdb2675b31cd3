/*
 * The parts of --at, in moment_checkpoint.c, moment_put.c and moment_ring.c.
 */
#ifndef GM_REPORT_HISTORY_INTERNAL_H
#define GM_REPORT_HISTORY_INTERNAL_H

#include "report/doc/options.h"
#include "report/history/books.h"

/* Makes the document that of the books, with the live allocations of `replay`. */
void gm_moment_put(struct gm_doc *doc, const struct gm_books *books, const struct gm_replay *replay,
		   const struct gm_options *options);

/* Returns the beginning of the window that the moment lies in. */
uint64_t gm_moment_window(const struct gm_doc *doc, uint64_t at_ns);

/* The moment from the ring: played from the start if all events are in it, else counted back. */
bool gm_moment_from_ring(struct gm_doc *doc, const struct gm_options *options, char *error,
			 size_t error_bytes);

/*
 * Applies a part of a checkpoint to the live allocations and the books, whose windows are those of
 * its time.
 */
void gm_checkpoint_apply(const struct gm_doc *doc, const struct gm_checkpoint_record *record,
			 struct gm_replay *replay, struct gm_books *books);

#endif
