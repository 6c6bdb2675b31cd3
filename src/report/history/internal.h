/*
 * The parts of --at, in moment_put.c and moment_ring.c.
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
 * States of the complete history of `doc` in the user's cache. They hold what gm_moment_put needs
 * and save time alone; there are none of a compressed history, or where the cache is not to be
 * used.
 */
struct gm_states {
	struct gm_doc *doc;
	int directory;	  /* of the cache; -1: there is none */
	uint64_t entries; /* played since the last state */
	bool kept;
	char name[96]; /* the beginning of the files' names */
};

void gm_states_open(struct gm_states *states, struct gm_doc *doc);
void gm_states_close(struct gm_states *states);

/*
 * Fills `replay` from the latest state that is not after the moment and returns its books, in the
 * document's zone; empty ones if there is no state. The journal goes on behind it.
 */
struct gm_books *gm_states_resume(struct gm_states *states, struct gm_replay *replay,
				  uint64_t at_ns);

#define GM_STATES_ENTRIES (1u << 20) /* between two states at least: 30 to 50 ms of playing */

/*
 * Keeps the state after an entry of that time, if a chunk of the journal ends there and enough
 * entries were played. To be called once `entries` has reached GM_STATES_ENTRIES.
 */
void gm_states_entry(struct gm_states *states, const struct gm_replay *replay,
		     const struct gm_books *books, uint64_t time_ns);

#endif
