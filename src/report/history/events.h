/*
 * The history of events: the complete one beside the file where there is one, else the ring in the
 * order in which things happened, and what each event did to the memory it names. Frees are joined
 * with their allocations by serial number, since a free call does not say how much it frees.
 */
#ifndef GM_REPORT_HISTORY_EVENTS_H
#define GM_REPORT_HISTORY_EVENTS_H

#include "report/doc/doc.h"

struct gm_history {
	struct gm_event_record *events; /* oldest first; frees with bytes, device, kind and level */
	unsigned count;
	bool complete; /* nothing is missing before them */
	uint64_t at_ns; /* as the document's when they were read */
};

/*
 * Returns the events of the ring, with --at those up to the moment. They are read once, and stay
 * the document's: callers change nothing in them.
 */
struct gm_history gm_load_history(struct gm_doc *doc);

/* Calls for each event of the complete history, or of the ring, in order; up to the moment of --at.
 */
void gm_history_each(struct gm_doc *doc, void (*visit)(const struct gm_event_record *, void *),
		     void *data);

/* The same, with what the ring has not: traces of PyTorch's blocks, waits for streams. */
void gm_history_each_traced(struct gm_doc *doc,
			    void (*visit)(const struct gm_event_record *, void *), void *data);

/*
 * Returns the part of the history that gm_history_each cannot reach, once it has been called, as a
 * sentence in the zone; NULL if it reaches all.
 */
const char *gm_history_gap(struct gm_doc *doc);

/*
 * Change of a level's total by an event, in bytes: what `totals` and `torch` count (owned memory at
 * the driver's level, blocks at the others). 0 for events that change nothing.
 */
int64_t gm_event_change(const struct gm_event_record *event);

/* The stack of an event: its own, or its site's. NULL if it has none. */
const struct gm_stack *gm_event_stack(struct gm_doc *doc, const struct gm_event_record *event);

#endif
