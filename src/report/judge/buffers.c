/*
 * The order of events tells one buffer that is freed before its successor is allocated from a
 * loop's working memory, and a store that was filled and then replaces its blocks from a leak. See
 * internal.h.
 */
#include "report/history/events.h"
#include "report/judge/internal.h"

#define LEAST_REPLACEMENTS 5

/* The thread that holds the buffer, and what it has done since. */
struct holder {
	uint32_t thread;
	bool freed;	 /* its last event was the buffer's free */
	bool other_work; /* it allocated elsewhere while it held the buffer */
	unsigned replaced, left_empty, outlived;
};

static void follow(struct holder *holder, const struct gm_event_record *event, bool here)
{
	bool allocates = event->op == GM_OP_ALLOC;

	if (holder->freed && allocates && here)
		holder->replaced++;
	else if (holder->freed)
		holder->left_empty++;
	if (here && allocates)
		holder->other_work = false;
	else if (allocates)
		holder->other_work = true;
	holder->freed = here && !allocates;
	if (holder->freed && holder->other_work)
		holder->outlived++;
}

static bool is_of(const struct gm_doc *doc, const struct gm_event_record *event,
		  const uint32_t *sites, unsigned count)
{
	for (unsigned i = 0; i < count && event->site < doc->sites_count; i++)
		if (doc->sites[event->site].merged == sites[i])
			return true;
	return false;
}

bool gm_replaces_since_full(struct gm_doc *doc, const struct gm_site *site)
{
	struct gm_history history = gm_load_history(doc);
	uint32_t number = (uint32_t)(site - doc->sites);
	uint64_t live = 0, full = 0, frees = 0, replaced = 0;

	for (unsigned i = 0; i < history.count; i++) {
		const struct gm_event_record *event = &history.events[i];

		if ((event->op != GM_OP_ALLOC && event->op != GM_OP_FREE) ||
		    !is_of(doc, event, &number, 1))
			continue;
		if (event->op == GM_OP_FREE) {
			full = frees++ ? full : live;
			live -= event->bytes < live ? event->bytes : live;
			continue;
		}
		live += event->bytes;
		replaced += frees > 0;
		if (frees && live > full)
			return false;
	}
	return replaced >= LEAST_REPLACEMENTS && frees == site->record.frees;
}

bool gm_replaced_at_once(struct gm_doc *doc, const uint32_t *sites, unsigned count)
{
	struct gm_history history = gm_load_history(doc);
	struct holder holder = {.thread = GM_NONE};

	for (unsigned i = 0; i < history.count; i++) {
		const struct gm_event_record *event = &history.events[i];
		bool here = is_of(doc, event, sites, count);

		if (event->op != GM_OP_ALLOC && event->op != GM_OP_FREE)
			continue;
		if (here && holder.thread == GM_NONE)
			holder.thread = event->thread;
		if (event->thread == holder.thread)
			follow(&holder, event, here);
	}
	return holder.replaced >= LEAST_REPLACEMENTS && holder.outlived >= LEAST_REPLACEMENTS &&
	       holder.left_empty <= holder.replaced / 10;
}
