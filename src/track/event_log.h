/*
 * The log of events: a ring of the last GM_EVENT_RING_RECORDS in the file, and the journal beside
 * it where all are kept. For track/, under the lock.
 */
#ifndef GM_TRACK_EVENT_LOG_H
#define GM_TRACK_EVENT_LOG_H

#include "track/event.h"
#include "track/state.h"

#define GM_EVENT_RING_RECORDS 65536u

/* Prepares the log when a file was opened. `on`: the ring is kept. */
void gm_event_log_start(bool on);

/*
 * Logs an event. A free is logged before its allocation ends. `serial` and `site` are those of the
 * allocation concerned, 0 and GM_NONE if there is none.
 */
void gm_log_event(enum gm_event_op op, const struct gm_event *event, uint64_t serial,
		  uint32_t site);

/* Logs an event in the complete history alone. There is one: gm_journal_on. */
void gm_log_to_journal(enum gm_event_op op, const struct gm_event *event, uint64_t serial,
		       uint32_t site);

/* Logs GM_OP_WAIT, GM_OP_WAIT_ALL or GM_OP_TRIM in the complete history, where one is kept. */
void gm_log_pool_event(enum gm_event_op op, int device, uint64_t stream, uint64_t bytes);

/* ---- the steps of the above, for the fast paths ---- */

/* True once the ring has its full length, so that no record need be appended any more. */
static inline bool gm_event_ring_is_complete(void)
{
	return gm_file->event_head >= GM_EVENT_RING_RECORDS;
}

/* True once the length of the ring changes no more: it is complete, or there is none. */
static inline bool gm_event_ring_is_settled(void)
{
	return gm_event_ring_is_complete() || !gm_track.ring.on;
}

/*
 * Sets gm_track.ring.next when none is left. Returns false if there is no ring.
 */
bool gm_event_ring_advance(void);

/* Takes the next record, of which one is left. */
static inline struct gm_event_record *gm_event_ring_take(void)
{
	struct gm_event_record *record = gm_track.ring.next;

	if (!record)
		__builtin_unreachable();
	gm_track.ring.left--;
	__atomic_store_n(&gm_track.ring.next, record + 1, __ATOMIC_RELAXED);
	return record;
}

/* Fills in what does not depend on the kind of memory. */
static inline void gm_event_log_describe(struct gm_event_record *record,
					 const struct gm_event *event, uint64_t bytes,
					 uint64_t serial, uint32_t site, uint32_t thread)
{
	record->time_ns = gm_track.now_ns;
	record->key = event->key;
	record->bytes = bytes;
	record->serial = serial;
	record->site = site;
	record->stack = event->stack;
	record->thread = thread;
	record->error = event->error;
	record->stream = event->stream;
}

static inline void gm_event_log_fill(struct gm_event_record *record, enum gm_event_op op,
				     const struct gm_event *event, uint64_t serial, uint32_t site,
				     uint32_t thread)
{
	gm_event_log_describe(record, event, event->bytes, serial, site, thread);
	record->function = (uint16_t)event->function;
	record->op = (uint8_t)op;
	record->kind = event->kind;
	record->device = event->device;
	record->level = event->level;
	record->space = event->space;
}

#endif
