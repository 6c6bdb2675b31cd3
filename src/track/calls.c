/*
 * Allocations and frees as they are told. Device memory and stream-ordered memory come as often as a program
 * likes: the usual ones go straight through, as blocks.c has PyTorch's blocks. What is unusual (a new site,
 * an address that was not freed, another family's free, a segment of PyTorch's, a retry under way, a
 * journal) is left to track.c, before anything was changed.
 */
#if defined(__GNUC__) && !defined(__clang__)
/* As in blocks.c: two counters in one register cost more to put together and take apart than they save. */
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

#include "track/book.h"
#include "track/calls.h"
#include "track/pools.h"
#include "track/retries.h"

/* What an allocation is summed in. */
struct sums {
	struct gm_level_record *level;
	struct gm_usage_record *usage;
	struct gm_open_series *series;
	struct gm_pool_record *pool; /* of stream-ordered memory */
};

/* False unless all are there and nothing but books is to be kept. */
static inline bool usual(unsigned kind, int device, uint32_t owner, struct sums *sums)
{
	unsigned slot = gm_slot(device);

	if (device < 0 || (kind != GM_KIND_DEVICE && kind != GM_KIND_ASYNC))
		return false;
	sums->level = gm_track.levels[slot][GM_LEVEL_DRIVER];
	sums->usage = gm_track.usage[slot][kind];
	sums->series = &gm_open_series[slot][GM_SERIES_TRACKED];
	sums->pool = kind == GM_KIND_ASYNC ? gm_pool_of_streams(owner) : NULL;
	return sums->level && sums->usage && (sums->pool || kind == GM_KIND_DEVICE) &&
	       gm_track.now_ns < sums->series->end_ns && gm_thread_id && !gm_open_chains &&
	       !gm_journal_on && gm_ring_steady();
}

static inline struct gm_event_record *tell(enum gm_event_op op, const struct gm_event *event,
					   const struct gm_alloc_record *alloc)
{
	struct gm_event_record *told = gm_ring_take();

	gm_history_fill(told, op, event, alloc->serial, alloc->site, gm_thread_id);
	gm_file->event_head++;
	return told;
}

/* gm_track_pool_due, at this event's time. */
static inline bool is_due(uint32_t number)
{
	const struct gm_pool_record *pool = number == GM_NONE ? NULL : gm_pool_at(number);

	return pool && gm_pool_is_due(pool, gm_track.now_ns);
}

static inline void enter(void)
{
	gm_lock_acquire(&gm_track.lock);
	gm_track.blocks_ready = 0;
	gm_track_entered();
	gm_file->events++;
}

/* ---- allocations ---- */

static inline bool add(const struct gm_event *event)
{
	struct gm_alloc_record *record = gm_store_at(gm_live.empty);
	struct gm_index_slot *place;
	struct gm_site_record *site;
	uint32_t site_number;
	struct sums sums;

	if (!usual(event->kind, event->device, event->owner, &sums) || event->flags ||
	    event->level != GM_LEVEL_DRIVER || gm_live.empty >= GM_INDEX_MOST_NUMBERS)
		return false;
	place = gm_index_place(&gm_live.index, event->space, event->key);
	site = place ? gm_site_known(event, &site_number) : NULL;
	if (!site)
		return false;
	gm_live.empty = record->site;
	gm_live_fill(record, event, site_number, gm_thread_id);
	gm_index_put(&gm_live.index, place, event->space, event->key, gm_store_spot(record),
		     gm_store_spot(site));
	gm_site_add(site, event->bytes, record->serial, sums.level);
	gm_usage_add(sums.usage, event->bytes);
	gm_level_add(sums.level, event->bytes, site);
	if (!sums.pool)
		gm_level_physical(sums.level, gm_physical_add(record));
	gm_series_value(sums.series, sums.level->current_bytes);
	if (sums.pool)
		gm_pool_took(sums.pool, event->bytes);
	gm_in_use_raise(event->device);
	tell(GM_OP_ALLOC, event, record);
	return true;
}

static __attribute__((noinline)) void add_unusual(const struct gm_event *event)
{
	gm_alloc(event);
	if (event->level == GM_LEVEL_DRIVER)
		gm_retry_served(event);
}

bool gm_track_alloc(const struct gm_event *event)
{
	bool due;

	if (!gm_file || !event->key)
		return false;
	enter();
	if (!add(event))
		add_unusual(event);
	due = event->kind == GM_KIND_ASYNC && is_due(event->owner);
	gm_track_leaving();
	return due;
}

/* ---- frees ---- */

struct gm_ticket gm_track_free_begin(uint8_t space, uint64_t key)
{
	struct gm_ticket ticket = {.record = GM_NONE, .owner = GM_NONE};
	const struct gm_index_slot *slot;
	struct gm_alloc_record *record;

	if (!gm_file || !key)
		return ticket;
	gm_lock_acquire(&gm_track.lock);
	slot = gm_index_find(&gm_live.index, space, key);
	if (slot) {
		ticket.record = gm_index_number(slot);
		record = gm_store_at(ticket.record);
		ticket.serial = record->serial;
		if (record->kind == GM_KIND_ASYNC || record->kind == GM_KIND_GRAPH)
			ticket.owner = record->owner;
		__atomic_store_n(&record->state, GM_STATE_FREEING, __ATOMIC_RELEASE);
	}
	gm_lock_release(&gm_track.lock);
	return ticket;
}

/* The ticket's record if it is still the allocation it was; another thread may have been given its
 * address as soon as CUDA had freed it. */
static inline struct gm_alloc_record *redeem(struct gm_ticket ticket)
{
	struct gm_alloc_record *record = gm_store_at(ticket.record);

	if (ticket.record == GM_NONE || record->state == GM_STATE_EMPTY || record->serial != ticket.serial)
		return NULL;
	return record;
}

/* What was entered by the general way has no site in the index. */
static inline struct gm_site_record *site_of(const struct gm_index_slot *place,
					     const struct gm_alloc_record *record)
{
	return place->site ? gm_store_at(place->site) : gm_store_record(GM_TABLE_SITES, record->site);
}

/* The books of an allocation that ends. */
static inline void take_out(const struct gm_alloc_record *record, struct gm_site_record *site,
			    const struct sums *sums)
{
	gm_site_remove(site, record->bytes, record->flags & GM_ALLOC_BEFORE_MARK, sums->level);
	gm_usage_remove(sums->usage, record->bytes);
	gm_level_remove(sums->level, record->bytes);
	if (sums->pool)
		gm_pool_gave(sums->pool, record->bytes);
	else
		gm_level_physical(sums->level, gm_physical_remove(record));
	gm_series_value(sums->series, sums->level->current_bytes);
}

static inline bool end(struct gm_alloc_record *record, const struct gm_event *event)
{
	struct gm_index_slot *place;
	struct gm_event_record *told;
	struct sums sums;

	if (record->kind != event->kind || record->flags & ~GM_ALLOC_BEFORE_MARK ||
	    record->level != GM_LEVEL_DRIVER || !usual(record->kind, record->device, record->owner, &sums))
		return false;
	place = gm_index_find(&gm_live.index, record->space, record->key);
	if (!place || gm_index_number(place) != gm_store_spot(record))
		return false;
	told = tell(GM_OP_FREE, event, record); /* a free does not say what it frees: the history should */
	told->bytes = record->bytes;
	told->device = record->device;
	gm_freed_note(record, event->stack, 0);
	take_out(record, site_of(place, record), &sums);
	gm_index_take(&gm_live.index, place);
	if (sums.pool)
		gm_pool_waits(record->owner, sums.pool, record->bytes, event->stream);
	gm_live_put(record);
	return true;
}

bool gm_track_free_end(struct gm_ticket ticket, const struct gm_event *event)
{
	struct gm_alloc_record *record;
	bool due;

	if (!gm_file || !event->key)
		return false;
	enter();
	record = redeem(ticket);
	if (event->error && event->error != GM_ERROR_TEARDOWN)
		gm_free_failed(record, event);
	else if (event->error || !record || !end(record, event))
		gm_free_succeeded(ticket, record, event);
	due = event->error == 0 && is_due(ticket.owner);
	gm_track_leaving();
	return due;
}
