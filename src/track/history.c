/*
 * The history of events: a ring of the last 65,536 in the file, and the journal beside it where all are
 * kept. Called under the tracker's lock.
 */
#include "track/book.h"

#define PER_CHUNK (GM_CHUNK_BYTES / (uint32_t)sizeof(struct gm_event_record))

GM_HOT_COUNTERS __attribute__((aligned(64))) struct gm_ring gm_ring; /* the first: gm_live lies in its line */

void gm_history_start(bool on)
{
	gm_ring.on = on;
	gm_ring.left = 0;
	gm_file->event_capacity = on ? GM_RING_RECORDS : 0;
	if (on)
		gm_file->features |= GM_FEATURE_RING;
}

static void set_next(struct gm_event_record *record, uint32_t left)
{
	__atomic_store_n(&gm_ring.next, record, __ATOMIC_RELAXED);
	gm_ring.left = left;
}

/* Finds the place of the next event; in the first round there is but one at a time. */
__attribute__((noinline)) bool gm_history_turn(void)
{
	uint32_t number = (uint32_t)(gm_file->event_head % GM_RING_RECORDS);
	struct gm_event_record *record;

	if (!gm_ring.on)
		return false;
	if (gm_file->event_head >= GM_RING_RECORDS) {
		set_next(gm_store_record(GM_TABLE_EVENTS, number), PER_CHUNK - number % PER_CHUNK);
		return true;
	}
	record = gm_store_append(GM_TABLE_EVENTS, 1, &number);
	set_next(record, record != NULL);
	gm_ring.on = record != NULL; /* else the file is full: the ring stays as long as it is */
	return gm_ring.on;
}

/* The journal of live allocations tells by itself what came, and what went without a word of its own. */
static bool tells_itself(enum gm_event_op op, const struct gm_event *event, uint64_t serial)
{
	return op == GM_OP_ALLOC || op == GM_OP_MAP ||
	       (op == GM_OP_FREE && serial && event->stack == GM_NONE && event->function == GM_NONE);
}

static __attribute__((noinline)) void tell_slowly(enum gm_event_op op, const struct gm_event *event,
						  uint64_t serial, uint32_t site)
{
	struct gm_event_record call;

	if (gm_journal_on && !tells_itself(op, event, serial)) {
		gm_history_fill(&call, op, event, serial, site, gm_calling_thread());
		gm_journal_call(&call);
	}
	if (!gm_ring.left && !gm_history_turn())
		return;
	gm_history_fill(gm_ring_take(), op, event, serial, site, gm_calling_thread());
	gm_file->event_head++;
	if (gm_file->event_head <= GM_RING_RECORDS)
		gm_store_publish(GM_TABLE_EVENTS);
}

void gm_history(enum gm_event_op op, const struct gm_event *event, uint64_t serial, uint32_t site)
{
	uint32_t thread = gm_thread_id;

	/* what nearly all events need, so that they save no registers: see the other for all */
	if (__builtin_expect(!gm_ring_steady() || gm_journal_on || !thread, 0)) {
		tell_slowly(op, event, serial, site);
		return;
	}
	gm_history_fill(gm_ring_take(), op, event, serial, site, thread);
	gm_file->event_head++;
}
