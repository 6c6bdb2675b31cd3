/*
 * The history of events: a ring of the last 65,536 in the file, and the journal beside it where all are
 * kept. Called under the tracker's lock.
 */
#include "track/state.h"

#define RING_RECORDS 65536u
#define PER_CHUNK    (GM_CHUNK_BYTES / (uint32_t)sizeof(struct gm_event_record))

static struct {
	struct gm_event_record *next; /* the record to use, and how many follow it in memory */
	uint32_t left;
	bool on;
} ring;

void gm_history_start(bool on)
{
	ring.on = on;
	ring.left = 0;
	gm_file->event_capacity = on ? RING_RECORDS : 0;
	if (on)
		gm_file->features |= GM_FEATURE_RING;
}

/* Finds the place of the next event; in the first round there is but one at a time. */
static __attribute__((noinline)) bool find_place(void)
{
	uint32_t number = (uint32_t)(gm_file->event_head % RING_RECORDS);

	if (!ring.on)
		return false;
	if (gm_file->event_head >= RING_RECORDS) {
		ring.next = gm_store_record(GM_TABLE_EVENTS, number);
		ring.left = PER_CHUNK - number % PER_CHUNK;
		return true;
	}
	ring.next = gm_store_append(GM_TABLE_EVENTS, 1, &number);
	ring.left = ring.next != NULL;
	ring.on = ring.next != NULL; /* else the file is full: the ring stays as long as it is */
	return ring.on;
}

void gm_history_prefetch(void)
{
	__builtin_prefetch(__atomic_load_n(&ring.next, __ATOMIC_RELAXED), 1);
}

static inline void fill(struct gm_event_record *record, enum gm_event_op op, const struct gm_event *event,
			uint64_t serial, uint32_t site, uint32_t thread)
{
	record->time_ns = gm_track.now_ns;
	record->key = event->key;
	record->bytes = event->bytes;
	record->serial = serial;
	record->site = site;
	record->stack = event->stack;
	record->thread = thread;
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

static __attribute__((noinline)) void tell_slowly(enum gm_event_op op, const struct gm_event *event,
						  uint64_t serial, uint32_t site)
{
	struct gm_event_record call;

	if (gm_journal_on && !tells_itself(op, event, serial)) {
		fill(&call, op, event, serial, site, gm_calling_thread());
		gm_journal_call(&call);
	}
	if (!ring.left && !find_place())
		return;
	ring.left--;
	fill(ring.next++, op, event, serial, site, gm_calling_thread());
	gm_file->event_head++;
	if (gm_file->event_head <= RING_RECORDS)
		gm_store_publish(GM_TABLE_EVENTS);
}

void gm_history(enum gm_event_op op, const struct gm_event *event, uint64_t serial, uint32_t site)
{
	uint32_t thread = gm_thread_id;

	/* what nearly all events need, so that they save no registers: see the other for all */
	if (__builtin_expect(!ring.left || gm_journal_on || !thread ||
			     gm_file->event_head < RING_RECORDS, 0)) {
		tell_slowly(op, event, serial, site);
		return;
	}
	ring.left--;
	fill(ring.next++, op, event, serial, site, thread);
	gm_file->event_head++;
}
