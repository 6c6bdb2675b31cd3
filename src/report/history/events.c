/*
 * Reading the ring of events, and playing the complete history (events.h).
 */
#include "report/history/events.h"
#include "report/journal/journal_file.h"
#include "report/journal/replay.h"
#include "report/stacks/stacks.h"
#include "report/support/numbering.h"
#include "account/kinds.h"
#include <stdlib.h>

/* The record of the allocation with a serial number, for the join. */
struct origin {
	uint64_t serial;
	const struct gm_event_record *event;
};

static int compare_origins(const void *a, const void *b)
{
	const struct origin *x = a, *y = b;

	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static bool known(const struct gm_event_record *event)
{
	return event->op < GM_OPS && event->kind < GM_KINDS && event->level < GM_LEVELS &&
	       event->device >= GM_HOST;
}

static bool in_time(const struct gm_doc *doc, const struct gm_event_record *event)
{
	return doc->at_ns == GM_NO_BYTES || event->time_ns <= doc->at_ns;
}

static bool frees(const struct gm_event_record *event)
{
	return event->op == GM_OP_FREE || event->op == GM_OP_IMPLICIT_FREE;
}

/* An unmapping is of the site and device whose memory was mapped there. */
static void join_mappings(struct gm_history *history)
{
	const struct gm_event_record **maps =
		gm_realloc(NULL, history->count * sizeof(const struct gm_event_record *));
	struct gm_numbering keys = {0};
	bool added;

	for (unsigned i = 0; i < history->count; i++) {
		struct gm_event_record *event = &history->events[i];
		unsigned number;

		if (event->op != GM_OP_MAP && event->op != GM_OP_UNMAP)
			continue;
		number = gm_number_of(&keys, &event->key, sizeof(event->key), &added);
		if (added || event->op == GM_OP_MAP)
			maps[number] = event->op == GM_OP_MAP ? event : NULL;
		if (event->op == GM_OP_UNMAP && maps[number]) {
			event->site = maps[number]->site;
			event->device = maps[number]->device;
		}
	}
	gm_numbering_free(&keys);
	free(maps);
}

/* Fills frees from their allocations, and mappings from what they map. */
static void join(struct gm_history *history)
{
	struct origin *origins = gm_realloc(NULL, history->count * sizeof(*origins));
	unsigned count = 0;

	for (unsigned i = 0; i < history->count; i++)
		if (history->events[i].op == GM_OP_ALLOC && history->events[i].serial)
			origins[count++] =
				(struct origin){history->events[i].serial, &history->events[i]};
	if (count)
		qsort(origins, count, sizeof(*origins), compare_origins);
	for (unsigned i = 0; count && i < history->count; i++) {
		struct gm_event_record *event = &history->events[i];
		struct origin key = {.serial = event->serial}, *origin;

		if (!event->serial || !(frees(event) || event->op == GM_OP_MAP))
			continue;
		origin = bsearch(&key, origins, count, sizeof(*origins), compare_origins);
		if (!origin)
			continue;
		event->site = origin->event->site;
		if (event->op == GM_OP_MAP)
			continue;
		event->bytes = origin->event->bytes;
		event->kind = origin->event->kind;
		event->device = origin->event->device;
		event->level = origin->event->level;
		event->space = origin->event->space;
	}
	free(origins);
	join_mappings(history);
}

static void read_ring(struct gm_doc *doc, struct gm_history *history)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_EVENTS);
	uint64_t head = doc->header->event_head;
	uint32_t oldest = head > records && records ? (uint32_t)(head % records) : 0;

	*history = (struct gm_history){.complete = head <= records && doc->complete,
				       .at_ns = doc->at_ns};
	history->events = gm_zone_alloc(&doc->zone, records, sizeof(*history->events));
	for (uint32_t i = 0; i < records; i++) {
		struct gm_event_record *event = &history->events[history->count];
		uint32_t number = (uint32_t)(((uint64_t)oldest + i) % records);

		if (gm_reader_get(doc->reader, GM_TABLE_EVENTS, number, event, sizeof(*event)) &&
		    known(event) && in_time(doc, event))
			history->count++;
	}
	join(history);
}

struct gm_history gm_load_history(struct gm_doc *doc)
{
	if (!doc->ring || doc->ring->at_ns != doc->at_ns) {
		doc->ring = gm_zone_alloc(&doc->zone, 1, sizeof(*doc->ring));
		read_ring(doc, doc->ring);
	}
	return *doc->ring;
}

static void each(struct gm_doc *doc, enum gm_event_op last,
		 void (*visit)(const struct gm_event_record *, void *), void *data)
{
	static struct gm_journal_entry entry;
	struct gm_replay replay = {0};
	struct gm_event_record event;
	struct gm_history ring;

	if (!doc->journal) {
		ring = gm_load_history(doc);
		for (unsigned i = 0; i < ring.count; i++)
			visit(&ring.events[i], data);
		return;
	}
	gm_journal_rewind(doc->journal);
	while (gm_journal_next(doc->journal, &entry) && in_time(doc, &entry.event)) {
		struct gm_replay_step step = gm_replay_apply(&replay, &entry);

		if (gm_replay_event(&replay, &entry, &step, &event) && event.op <= last)
			visit(&event, data);
	}
	gm_replay_free(&replay);
}

void gm_history_each(struct gm_doc *doc, void (*visit)(const struct gm_event_record *, void *),
		     void *data)
{
	each(doc, GM_OP_LAUNCH, visit, data);
}

void gm_history_each_traced(struct gm_doc *doc,
			    void (*visit)(const struct gm_event_record *, void *), void *data)
{
	each(doc, GM_OPS, visit, data);
}

const char *gm_history_gap(struct gm_doc *doc)
{
	const struct gm_journal_header *header =
		doc->journal ? gm_journal_header(doc->journal) : NULL;

	if (header && gm_journal_damage(doc->journal))
		return gm_zone_printf(&doc->zone,
				      "the history of %s %s; what comes after that is left out",
				      doc->path, gm_journal_damage(doc->journal));
	if (header && header->lost)
		return gm_zone_printf(
			&doc->zone,
			"the history of %s ends after %.9g s; %llu later events are left out",
			doc->path, (double)header->lost_from_ns / 1e9,
			(unsigned long long)header->lost);
	return NULL;
}

int64_t gm_event_change(const struct gm_event_record *event)
{
	bool counts = gm_in_level(event->level, event->kind);

	if (!counts || event->bytes > INT64_MAX)
		return 0;
	if (event->op == GM_OP_ALLOC)
		return (int64_t)event->bytes;
	return frees(event) && event->serial ? -(int64_t)event->bytes : 0;
}

const struct gm_stack *gm_event_stack(struct gm_doc *doc, const struct gm_event_record *event)
{
	const struct gm_stack *stack = gm_doc_stack(doc, event->stack);

	if (!stack && event->site < doc->sites_count)
		stack = doc->sites[event->site].stack;
	return stack;
}
