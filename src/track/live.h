/*
 * The live table: a record in the file for each allocation that was not freed, and an index in
 * private memory that finds it by its key (gm_track.live), whose values are the offsets of records
 * (gm_store_offset). Empty records form a chain, which begins at `emptied` of the file's header
 * (layout.h, "The end of the work"). For track/, under the lock.
 */
#ifndef GM_TRACK_LIVE_H
#define GM_TRACK_LIVE_H

#include "account/sizes.h"
#include "store/thread_state.h"
#include "track/event.h"
#include "track/index.h"
#include "track/named_ranges.h"
#include "track/state.h"
#include "track/windows.h"

void gm_live_reset(void);

/*
 * Returns the live record of a key and stores its index, GM_NONE if the record is not in the file
 * (surplus.h); NULL if there is none.
 */
struct gm_alloc_record *gm_live_find(unsigned space, uint64_t key, uint32_t *index);

/*
 * Returns the record of a handle that was released while it was mapped, and stores its index; NULL
 * if there is none. The index of the live table does not have it, because CUDA may give its number
 * out again.
 */
struct gm_alloc_record *gm_live_find_pending(uint64_t handle, uint32_t *index);

/*
 * Returns a live record of a space of addresses that contains an address behind its first; NULL if
 * there is none. Looks at all records.
 */
struct gm_alloc_record *gm_live_find_containing(unsigned space, uint64_t address);

/*
 * Calls `visit` for each record until it returns false. Memory that is being freed is live until
 * the call returned, and a pending handle until the driver gives its memory back. The index is
 * GM_NONE of a record that is not in the file.
 */
void gm_live_each(bool (*visit)(struct gm_alloc_record *, uint32_t index, void *), void *data);

/* Adds a record; NULL if there is no room for it, in the file and beside it (surplus.h). */
struct gm_alloc_record *gm_live_add(const struct gm_event *event, uint32_t site);

/* Removes a record, which is empty from now on. The index is the one that gm_live_find stored. */
void gm_live_remove(struct gm_alloc_record *record, uint32_t index);

/* Add a record to the index and remove it from there, without a change of the record. */
bool gm_live_add_to_index(struct gm_alloc_record *record);
void gm_live_remove_from_index(struct gm_alloc_record *record);

/* ---- the steps of the above, for the fast paths ---- */

/*
 * Takes the record that was emptied last, which exists, for an allocation. What was freed before is
 * not part of the program's end, because the work goes on.
 */
static inline void gm_live_reuse(const struct gm_alloc_record *record)
{
	uint32_t before = record->state >> GM_STATE_BITS;

	/* atomic, because a prefetch reads it without the lock */
	__atomic_store_n(&gm_file->emptied, before, __ATOMIC_RELAXED);
	gm_file->emptied_at_work = before;
	gm_windows_advance();
}

/* Fills in what does not depend on the kind of memory. */
static inline void gm_live_describe(struct gm_alloc_record *record, const struct gm_event *event,
				    uint32_t site, uint32_t thread)
{
	record->site = site;
	record->key = event->key;
	record->bytes = event->bytes;
	record->time_ns = gm_track.now_ns;
	record->stream = event->stream;
	record->serial = gm_file->serial + 1;
	/* atomic, because gm_track_free_begin reads it without the lock */
	__atomic_store_n(&gm_file->serial, record->serial, __ATOMIC_RELAXED);
	record->owner = event->owner;
	record->references = 1;
	record->mappings = 0;
	record->context = event->context - 1; /* 0, unknown, becomes GM_NONE */
	record->ipc = event->ipc;
	record->thread = thread;
	record->range = __builtin_expect(gm_thread.range != NULL, 0) ? *gm_thread.range : 0;
	record->extra = (int8_t)event->extra;
	record->capture = 0;
}

/*
 * Makes a record count. The state is written last: a process that is killed before leaves no
 * record, and one that is killed afterwards a whole one.
 */
static inline void gm_live_publish(struct gm_alloc_record *record)
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
	record->physical_bytes =
		gm_driver_bytes(event->level, event->kind, gm_laid_out_bytes(event));
	record->flags = event->flags;
	__atomic_store_n(&gm_file->launched, 0, __ATOMIC_RELAXED);
	record->space = event->space;
	record->kind = event->kind;
	record->device = event->device;
	record->level = event->level;
	gm_live_publish(record);
}

/* Makes a record empty and adds it to the chain of empty ones. */
static inline void gm_live_release(struct gm_alloc_record *record)
{
	if (__builtin_expect(gm_file->worked, 0)) {
		gm_file->emptied_at_work = gm_file->emptied;
		gm_file->worked = 0;
	}
	__atomic_store_n(&record->state, gm_file->emptied << GM_STATE_BITS | GM_STATE_EMPTY,
			 __ATOMIC_RELEASE);
	__atomic_store_n(&gm_file->emptied, gm_store_offset(record), __ATOMIC_RELAXED);
	gm_file->freed++;
}

#endif
