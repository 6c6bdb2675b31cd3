/*
 * The log of events.
 */
#include "track/event_log.h"
#include "store/journal.h"
#include "track/thread_id.h"

#define PER_CHUNK (GM_CHUNK_BYTES / (uint32_t)sizeof(struct gm_event_record))

void gm_event_log_start(bool on)
{
	gm_track.ring.on = on;
	gm_track.ring.left = 0;
	gm_file->event_capacity = on ? GM_EVENT_RING_RECORDS : 0;
	if (on)
		gm_file->features |= GM_FEATURE_RING;
}

static void set_next(struct gm_event_record *record, uint32_t left)
{
	__atomic_store_n(&gm_track.ring.next, record, __ATOMIC_RELAXED);
	gm_track.ring.left = left;
}

/*
 * In the first round the ring grows by one record at a time; if the file is full it stays as it is.
 */
__attribute__((noinline)) bool gm_event_ring_advance(void)
{
	uint32_t index = (uint32_t)(gm_file->event_head % GM_EVENT_RING_RECORDS);
	struct gm_event_record *record;

	if (!gm_track.ring.on)
		return false;
	if (gm_event_ring_is_complete()) {
		set_next(gm_store_record(GM_TABLE_EVENTS, index), PER_CHUNK - index % PER_CHUNK);
		return true;
	}
	record = gm_store_append(GM_TABLE_EVENTS, 1, &index);
	set_next(record, record != NULL);
	gm_track.ring.on = record != NULL;
	return gm_track.ring.on;
}

/*
 * The journal of the live table shows by itself what was added, and what was removed without a
 * stack.
 */
static bool is_in_journal(enum gm_event_op op, const struct gm_event *event, uint64_t serial)
{
	return op == GM_OP_ALLOC || op == GM_OP_MAP ||
	       (op == GM_OP_FREE && serial && event->stack == GM_NONE &&
		event->function == GM_NONE);
}

void gm_log_to_journal(enum gm_event_op op, const struct gm_event *event, uint64_t serial,
		       uint32_t site)
{
	struct gm_event_record call;

	gm_event_log_fill(&call, op, event, serial, site, gm_calling_thread());
	gm_journal_call(&call);
}

void gm_log_pool_event(enum gm_event_op op, int device, uint64_t stream, uint64_t bytes)
{
	const struct gm_event event = {.bytes = bytes,
				       .stack = GM_NONE,
				       .function = GM_NONE,
				       .kind = GM_KIND_ASYNC,
				       .device = (int16_t)device,
				       .stream = stream};

	if (gm_journal_on)
		gm_log_to_journal(op, &event, 0, GM_NONE);
}

static __attribute__((noinline)) void log_slow(enum gm_event_op op, const struct gm_event *event,
					       uint64_t serial, uint32_t site)
{
	if (gm_journal_on && !is_in_journal(op, event, serial))
		gm_log_to_journal(op, event, serial, site);
	if (!gm_track.ring.left && !gm_event_ring_advance())
		return;
	gm_event_log_fill(gm_event_ring_take(), op, event, serial, site, gm_calling_thread());
	gm_file->event_head++;
	if (gm_file->event_head <= GM_EVENT_RING_RECORDS)
		gm_store_publish(GM_TABLE_EVENTS);
}

/*
 * This function is what nearly all events need, apart from the slow path so that it saves no
 * registers.
 */
void gm_log_event(enum gm_event_op op, const struct gm_event *event, uint64_t serial, uint32_t site)
{
	uint32_t thread = gm_thread.id;

	if (__builtin_expect(!gm_track.ring.left || !gm_event_ring_is_complete() || gm_journal_on ||
				     !thread,
			     0)) {
		log_slow(op, event, serial, site);
		return;
	}
	gm_event_log_fill(gm_event_ring_take(), op, event, serial, site, thread);
	gm_file->event_head++;
}
