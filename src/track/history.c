/*
 * The history of events: a ring of the last 65,536 in the file, and the journal beside it where all are
 * kept. Called under the tracker's lock.
 */
#include "track/state.h"

#define RING_RECORDS 65536u

static bool ring_on;

void gm_history_start(bool on)
{
	ring_on = on;
	gm_file->event_capacity = on ? RING_RECORDS : 0;
	if (on)
		gm_file->features |= GM_FEATURE_RING;
}

static struct gm_event_record *next_record(void)
{
	uint32_t number = (uint32_t)(gm_file->event_head % RING_RECORDS);
	struct gm_event_record *record;

	if (gm_file->event_head >= RING_RECORDS)
		return gm_store_record(GM_TABLE_EVENTS, number);
	record = gm_store_append(GM_TABLE_EVENTS, 1, &number);
	if (!record) /* the file is full: the ring stays as long as it is */
		ring_on = false;
	return record;
}

static void fill(struct gm_event_record *record, enum gm_event_op op, const struct gm_event *event,
		 uint64_t serial, uint32_t site)
{
	record->time_ns = gm_track.now_ns;
	record->key = event->key;
	record->bytes = event->bytes;
	record->serial = serial;
	record->site = site;
	record->stack = event->stack;
	record->thread = gm_calling_thread();
	record->function = (uint16_t)event->function;
	record->op = (uint8_t)op;
	record->kind = event->kind;
	record->device = event->device;
	record->level = event->level;
	record->space = event->space;
	record->error = event->error;
	record->stream = event->stream;
}

/* The journal of live allocations tells by itself what came, and what went without a word of its own. */
static bool tells_itself(enum gm_event_op op, const struct gm_event *event, uint64_t serial)
{
	return op == GM_OP_ALLOC || op == GM_OP_MAP ||
	       (op == GM_OP_FREE && serial && event->stack == GM_NONE && event->function == GM_NONE);
}

void gm_history(enum gm_event_op op, const struct gm_event *event, uint64_t serial, uint32_t site)
{
	struct gm_event_record *record, call;

	if (gm_journal_on && !tells_itself(op, event, serial)) {
		fill(&call, op, event, serial, site);
		gm_journal_call(&call);
	}
	if (!ring_on)
		return;
	record = next_record();
	if (!record)
		return;
	fill(record, op, event, serial, site);
	gm_file->event_head++;
	if (gm_file->event_head <= RING_RECORDS)
		gm_store_publish(GM_TABLE_EVENTS);
}
