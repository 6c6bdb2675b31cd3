/*
 * Allocations and frees as they are told. Device memory and stream-ordered memory come as often as a program
 * likes: the usual ones go straight through, as blocks.c has PyTorch's blocks. What is unusual (a new site,
 * an address that was not freed, another family's free, a segment of PyTorch's, memory from before the first
 * mark, a retry under way, a journal) is left to track.c, before anything was changed.
 *
 * What such a call of a device needs from here and there is held ready in one line until an event of any
 * other kind comes, blocks of PyTorch's apart: they change nothing of it.
 */
#if defined(__GNUC__) && !defined(__clang__)
/* As in blocks.c. */
#pragma GCC optimize("no-tree-slp-vectorize", "no-align-jumps", "no-align-labels", "no-align-loops")
#endif

#include "track/book.h"
#include "track/calls.h"
#include "track/collected.h"
#include "track/freed.h"
#include "track/pools.h"
#include "track/retries.h"
#include "track/slabs.h"

#define likely(condition)   __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/* The books of a device's memory of one kind, as they are while their bit in gm_track.calls_ready is set. */
struct ready {
	uint64_t class; /* what makes a call or a record one of these: class_at() */
	struct gm_usage_record *usage;
	struct gm_pool_record *pool;	   /* of stream-ordered memory, else NULL */
	uint32_t owner;			   /* its number, else GM_NONE */
	uint32_t level;			   /* gm_store_offset of the driver's */
	uint64_t *last_bytes;		   /* of the open point of the series of what is tracked */
	uint64_t end_ns;		   /* of that point */
	uint64_t least_bytes, most_bytes; /* with a total outside of them more is to be noted: beyond() */
} __attribute__((aligned(64)));

#define READY_DEVICES 16u /* the calls of those beyond go the general way */

static struct ready ready[READY_DEVICES * 2];

static inline unsigned number_of(unsigned device, unsigned kind)
{
	return device * 2 + (kind == GM_KIND_ASYNC);
}

/* The members of an event and of an allocation's record from `flags` on, at once. */
static inline uint64_t class_at(const void *flags)
{
	uint64_t class;

	memcpy(&class, flags, sizeof(class));
	return class;
}

/* The pool that a call is about: NULL where there is none, false where it is not there either. */
static bool get_pool(struct ready *books, unsigned kind, uint32_t owner)
{
	books->owner = owner;
	books->pool = kind == GM_KIND_ASYNC ? gm_pool_of_streams(owner) : NULL;
	return kind == GM_KIND_ASYNC ? books->pool != NULL : kind == GM_KIND_DEVICE && owner == GM_NONE;
}

/* Between which totals of the level nothing is to be noted but the last. */
static void get_range(struct ready *books, int device, const struct gm_open_series *series)
{
	uint64_t room = gm_in_use_room_of_calls(device);

	books->least_bytes = room ? series->min_bytes : UINT64_MAX;
	books->most_bytes = series->max_bytes < room ? series->max_bytes : room;
}

/* False unless all are there and nothing but books is to be kept. */
static GM_COLD bool get_ready(uint64_t class, int device, unsigned kind, uint32_t owner)
{
	/* a pointer, of the driver's level, without flags */
	const struct gm_alloc_record usual = {.kind = (uint8_t)kind, .device = (int16_t)device};
	unsigned slot = gm_slot(device), number = number_of((unsigned)device, kind);
	struct gm_open_series *series = &gm_open_series[slot][GM_SERIES_TRACKED];
	struct gm_level_record *level = gm_totals.levels[slot][GM_LEVEL_DRIVER];
	struct ready *books = &ready[number];

	if (class != class_at(&usual.flags) || !level || !gm_totals.usage[slot][kind] ||
	    gm_open_chains || gm_journal_on || gm_file->event_head < GM_RING_RECORDS)
		return false;
	gm_track.calls_ready &= ~(1u << number);
	if (!get_pool(books, kind, owner))
		return false;
	if (gm_track.now_ns >= series->end_ns && !gm_timeline_open(series, device, GM_SERIES_TRACKED))
		return false;
	books->class = class;
	books->level = gm_store_offset(level);
	books->usage = gm_totals.usage[slot][kind];
	books->last_bytes = &series->record->last_bytes[series->point];
	books->end_ns = series->end_ns;
	get_range(books, device, series);
	gm_track.calls_ready |= 1u << number;
	return true;
}

/* NULL where a call or record is not usual. */
static inline struct ready *books_of(uint64_t class, int device, unsigned kind, uint32_t owner)
{
	unsigned number = number_of((unsigned)device, kind);
	struct ready *books;

	if (unlikely((unsigned)device >= READY_DEVICES))
		return NULL;
	books = &ready[number];
	__asm__("" : "+r"(books)); /* in a register from here on, for less code than the address itself */
	if (likely(gm_track.calls_ready & 1u << number && books->class == class &&
		   books->owner == owner && gm_track.now_ns < books->end_ns))
		return books;
	return get_ready(class, device, kind, owner) ? books : NULL;
}

/* ---- the steps of both ---- */

/* `more`: in use is more than it was. */
static GM_COLD void beyond(struct ready *books, int device, uint64_t bytes, bool more)
{
	struct gm_open_series *series = &gm_open_series[gm_slot(device)][GM_SERIES_TRACKED];

	gm_series_value(series, bytes);
	if (more)
		gm_in_use_raise(device);
	get_range(books, device, series);
}

static inline void note_total(struct ready *books, int device, uint64_t bytes, bool more)
{
	*books->last_bytes = bytes;
	if (unlikely(bytes < books->least_bytes || bytes > books->most_bytes))
		beyond(books, device, bytes, more);
}

/* The history's next record, but for its `bytes`, `device` and what goes by these. */
static inline void tell(enum gm_event_op op, const struct gm_event *event,
			const struct gm_alloc_record *alloc, uint32_t thread)
{
	struct gm_event_record *told;

	if (unlikely(!gm_ring.left))
		gm_history_turn();
	told = gm_ring_take();
	gm_history_describe(told, event, alloc->bytes, alloc->serial, alloc->site, thread);
	/* kind, device and level lie as in `alloc`; the space is 0 in both, what lies before is overwritten */
	memcpy(&told->function, &alloc->flags, sizeof(uint64_t));
	told->function = (uint16_t)event->function;
	told->op = (uint8_t)op;
	gm_file->event_head++;
}

/* gm_track_pool_due, at this event's time. */
static inline bool is_due(uint32_t number)
{
	const struct gm_pool_record *pool = number == GM_NONE ? NULL : gm_pool_at(number);

	return pool && gm_pool_is_due(pool, gm_track.now_ns);
}

static inline void enter(const struct gm_event *event)
{
	gm_track_lock();
	gm_blocks_unready();
	gm_track_entered(gm_clock_ns_at(&gm_clock, event->ticks));
	gm_file->events++;
}

/* The records that such a call counts in: all of them are there. */
static inline struct gm_counters counters_of(const struct ready *books, struct gm_site_record *site,
					     struct gm_level_record *level)
{
	if (!books->usage)
		__builtin_unreachable();
	return gm_counters_known(site, level, books->usage);
}

/* ---- allocations ---- */

/* What the driver must hold for an allocation of one of the two kinds. */
static inline uint64_t share_of(const struct ready *books, uint64_t bytes)
{
	return gm_driver_bytes(GM_LEVEL_DRIVER, books->pool ? GM_KIND_ASYNC : GM_KIND_DEVICE, bytes);
}

static inline bool add(const struct gm_event *event)
{
	uint64_t class = class_at(&event->flags), key = event->key, bytes = event->bytes;
	struct gm_index_slot *place = gm_index_place(&gm_live.index, GM_SPACE_POINTER, key);
	struct gm_latest_site known = gm_site_known(event);
	uint32_t spot = gm_file->emptied, thread;
	int device = event->device;
	struct gm_alloc_record *record;
	struct gm_level_record *level;
	struct gm_site_record *site;
	struct gm_counters counters;
	struct ready *books;

	if (unlikely(!known.number))
		return false;
	if (unlikely(!place || !spot || spot >= GM_INDEX_MOST_NUMBERS))
		return false;
	books = books_of(class, device, event->kind, event->owner);
	if (unlikely(!books))
		return false;
	thread = gm_calling_thread();
	record = gm_store_at(spot);
	site = gm_store_at(known.spot);
	gm_live_reuse(record);
	gm_live_describe(record, event, known.number - 1, thread);
	record->physical_bytes = share_of(books, gm_laid_out_bytes(event));
	memcpy(&record->flags, &class, sizeof(class));
	gm_live_count(record);
	gm_index_put(&gm_live.index, place, GM_SPACE_POINTER, key, spot, known.spot);
	level = gm_store_at(books->level);
	counters = counters_of(books, site, level);
	gm_site_windows(site);
	gm_count_alloc(&counters, bytes, record->serial, gm_track.now_ns);
	note_total(books, device, level->current_bytes, true);
	if (books->pool)
		gm_pool_took(books->pool, bytes);
	else if (bytes <= GM_SLAB_LIMIT_BYTES)
		gm_level_physical(level, gm_slab_took(device, key, record->physical_bytes));
	else
		gm_level_physical(level, record->physical_bytes);
	tell(GM_OP_ALLOC, event, record, thread);
	return true;
}

static GM_COLD void add_unusual(const struct gm_event *event)
{
	gm_alloc(event);
	if (event->level == GM_LEVEL_DRIVER)
		gm_retry_served(event);
}

GM_HOT_CODE bool gm_track_alloc(const struct gm_event *event)
{
	bool due;

	if (!gm_file || !event->key)
		return false;
	enter(event);
	if (unlikely(!add(event)))
		add_unusual(event);
	due = event->kind == GM_KIND_ASYNC && is_due(event->owner);
	gm_track_leaving();
	return due;
}

/* ---- frees ---- */

/* Has what the end will need on its way into the cache, while CUDA frees. */
static inline void prefetch(const struct gm_index_slot *place, unsigned space, uint64_t key)
{
	const struct gm_site_record *site = gm_store_at(place->site);

	gm_prefetch(site);
	gm_prefetch(&site->windows[gm_track.window[0]]);
	gm_prefetch(gm_ring.next);
	gm_freed_prefetch(space, key);
}

GM_HOT_CODE struct gm_ticket gm_track_free_begin(uint8_t space, uint64_t key)
{
	struct gm_ticket ticket = {.record = GM_NONE, .owner = GM_NONE};
	const struct gm_index_slot *slot;
	struct gm_alloc_record *record;

	if (!gm_file || !key)
		return ticket;
	gm_track_lock();
	slot = gm_index_find(&gm_live.index, space, key);
	if (slot) {
		prefetch(slot, space, key);
		ticket.record = gm_index_number(slot);
		record = gm_store_at(ticket.record);
		ticket.serial = record->serial;
		if (gm_kind_in_pool(record->kind))
			ticket.owner = record->owner;
		__atomic_store_n(&record->state, GM_STATE_FREEING, __ATOMIC_RELEASE);
	}
	gm_track_unlock();
	return ticket;
}

/* The ticket's record if it is still the allocation it was; another thread may have been given its
 * address as soon as CUDA had freed it. */
static inline struct gm_alloc_record *redeem(struct gm_ticket ticket)
{
	struct gm_alloc_record *record = gm_store_at(ticket.record);

	if (ticket.record == GM_NONE || (record->state & GM_STATE_MASK) == GM_STATE_EMPTY || record->serial != ticket.serial)
		return NULL;
	return record;
}

/* What was entered by the general way has no site in the index. */
static inline struct gm_site_record *site_of(const struct gm_index_slot *place,
					     const struct gm_alloc_record *record)
{
	return likely(place->site) ? gm_store_at(place->site) :
				     gm_store_record(GM_TABLE_SITES, record->site);
}

static inline bool end(uint32_t spot, const struct gm_event *event)
{
	struct gm_alloc_record *record = gm_store_at(spot);
	uint64_t bytes = record->bytes;
	int device = record->device;
	struct gm_index_slot *place = gm_index_find(&gm_live.index, GM_SPACE_POINTER, record->key);
	struct gm_level_record *level;
	struct gm_site_record *site;
	struct gm_counters counters;
	struct gm_pool_record *pool;
	struct ready *books;

	if (unlikely(record->kind != event->kind || !place || gm_index_number(place) != spot))
		return false;
	books = books_of(class_at(&record->flags), device, record->kind, record->owner);
	if (unlikely(!books))
		return false;
	tell(GM_OP_FREE, event, record, gm_calling_thread());
	pool = books->pool;
	level = gm_store_at(books->level);
	site = site_of(place, record);
	counters = counters_of(books, site, level);
	gm_site_windows(site);
	gm_count_free(&counters, bytes, 1, false);
	gm_note_collected(&counters, record);
	if (pool) {
		gm_pool_gave(pool, bytes);
		gm_pool_waits(books->owner, pool, bytes, event->stream);
	} else if (bytes <= GM_SLAB_LIMIT_BYTES) {
		gm_level_physical(level, -gm_slab_gave(device, record));
	} else {
		gm_level_physical(level, -record->physical_bytes);
	}
	note_total(books, device, level->current_bytes, false);
	gm_index_take(&gm_live.index, place);
	gm_freed_note(record, event->stack, 0);
	gm_live_put(record);
	return true;
}

GM_HOT_CODE bool gm_track_free_end(struct gm_ticket ticket, const struct gm_event *event)
{
	struct gm_alloc_record *record;
	bool due;

	if (!gm_file || !event->key)
		return false;
	enter(event);
	record = redeem(ticket);
	if (event->error && event->error != GM_ERROR_TEARDOWN)
		gm_free_failed(record, event);
	else if (event->error || !record || !end(ticket.record, event))
		gm_free_succeeded(ticket, record, event);
	due = event->error == 0 && is_due(ticket.owner);
	gm_track_leaving();
	return due;
}
