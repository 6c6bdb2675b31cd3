/*
 * The small steps that an event is made of, inline: they are few instructions each, and every event
 * takes most of them. Private to track/, under the tracker's lock.
 */
#ifndef GM_TRACK_BOOK_H
#define GM_TRACK_BOOK_H

#include "account/counters.h"
#include "track/index.h"
#include "track/physical.h"
#include "track/state.h"
#include "track/work.h"

/* ---- sites ---- */

/* The site that a stack was last met at: mostly the only one it has. */
struct gm_latest_site {
	uint32_t number; /* + 1; 0: none */
	uint32_t spot;	 /* gm_store_offset */
};

struct gm_latest_sites {
	struct gm_latest_site *site;
	struct gm_latest_site stackless; /* the same, where stacks are off */
	uint32_t room;
};
extern struct gm_latest_sites gm_latest_sites __attribute__((visibility("hidden")));

static inline struct gm_latest_site gm_site_latest(uint32_t stack)
{
	return __builtin_expect(stack < gm_latest_sites.room, 1) ? gm_latest_sites.site[stack]
								: gm_latest_sites.stackless;
}

/* The site of an event, none if that needs a search. */
static inline struct gm_latest_site gm_site_known(const struct gm_event *event)
{
	struct gm_latest_site known = gm_site_latest(event->stack);
	const struct gm_site_record *site = gm_store_at(known.spot);

	if (__builtin_expect(known.number && site->stack == event->stack && site->kind == event->kind &&
			     site->level == event->level && site->device == event->device, 1) &&
	    (event->stack != GM_NONE || site->function == event->function))
		return known;
	return (struct gm_latest_site){0};
}

/* ---- the live table ---- */

struct gm_live {
	struct gm_index index;
};
extern struct gm_live gm_live __attribute__((visibility("hidden")));

/*
 * Takes the record that was emptied last, which is to be filled and counted, for an allocation; and the work
 * goes on: what was freed before is not part of the program's end. The file's `emptied` is not 0.
 */
static inline void gm_live_reuse(const struct gm_alloc_record *record)
{
	uint32_t before = record->state >> GM_STATE_BITS;

	__atomic_store_n(&gm_file->emptied, before, __ATOMIC_RELAXED); /* a guess without the lock reads it */
	gm_file->emptied_at_work = before;
	gm_windows_advance();
}

/* The parts of gm_live_fill: what does not go by an event's kind of memory. */
static inline void gm_live_describe(struct gm_alloc_record *record, const struct gm_event *event,
				    uint32_t site, uint32_t thread)
{
	record->site = site;
	record->key = event->key;
	record->bytes = event->bytes;
	record->time_ns = gm_track.now_ns;
	record->stream = event->stream;
	record->serial = ++gm_file->serial;
	record->owner = event->owner;
	record->references = 1;
	record->mappings = 0;
	record->context = event->context - 1; /* 0, unknown, becomes GM_NONE */
	record->ipc = event->ipc;
	record->thread = thread;
}

/* The state is written last and alone makes the record count, so a process killed half-way through
 * leaves a record that is either whole or not there. */
static inline void gm_live_count(struct gm_alloc_record *record)
{
	__atomic_store_n(&record->state, GM_STATE_LIVE, __ATOMIC_RELEASE);
}

static inline uint64_t gm_laid_out_bytes(const struct gm_event *event)
{
	return event->layout_bytes ? event->layout_bytes : event->bytes;
}

static inline void gm_live_fill(struct gm_alloc_record *record, const struct gm_event *event,
				uint32_t site, uint32_t thread)
{
	gm_live_describe(record, event, site, thread);
	record->physical_bytes = gm_driver_bytes(event->level, event->kind, gm_laid_out_bytes(event));
	record->flags = event->flags;
	record->space = event->space;
	record->kind = event->kind;
	record->device = event->device;
	record->level = event->level;
	gm_live_count(record);
}

static inline void gm_live_put(struct gm_alloc_record *record)
{
	if (__builtin_expect(gm_file->worked, 0)) {
		gm_file->emptied_at_work = gm_file->emptied;
		gm_file->worked = 0;
	}
	__atomic_store_n(&record->state, gm_file->emptied << GM_STATE_BITS | GM_STATE_EMPTY, __ATOMIC_RELEASE);
	__atomic_store_n(&gm_file->emptied, gm_store_offset(record), __ATOMIC_RELAXED);
	gm_file->freed++;
}

/* ---- the ring of the last events ---- */

#define GM_RING_RECORDS 65536u

struct gm_ring {
	struct gm_event_record *next; /* the record to use (atomic, as above), and how many follow it in memory */
	uint32_t left;
	bool on;
};
extern struct gm_ring gm_ring __attribute__((visibility("hidden")));

/* True when the next event's place is known, in a ring that is as long as it will be. */
static inline bool gm_ring_steady(void)
{
	return gm_ring.left && gm_file->event_head >= GM_RING_RECORDS;
}

/* Finds the next event's place where none is known: false without a ring. */
bool gm_history_turn(void);

static inline struct gm_event_record *gm_ring_take(void)
{
	struct gm_event_record *record = gm_ring.next;

	gm_ring.left--;
	__atomic_store_n(&gm_ring.next, record + 1, __ATOMIC_RELAXED);
	return record;
}

/* The parts of gm_history_fill, as above. */
static inline void gm_history_describe(struct gm_event_record *record, const struct gm_event *event,
				       uint64_t bytes, uint64_t serial, uint32_t site,
				       uint32_t thread)
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

static inline void gm_history_class(struct gm_event_record *record, enum gm_event_op op,
				    const struct gm_event *event)
{
	record->function = (uint16_t)event->function;
	record->op = (uint8_t)op;
	record->kind = event->kind;
	record->device = event->device;
	record->level = event->level;
	record->space = event->space;
}

static inline void gm_history_fill(struct gm_event_record *record, enum gm_event_op op,
				   const struct gm_event *event, uint64_t serial, uint32_t site,
				   uint32_t thread)
{
	gm_history_describe(record, event, event->bytes, serial, site, thread);
	gm_history_class(record, op, event);
}

#endif
