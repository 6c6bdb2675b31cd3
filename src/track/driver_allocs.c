/*
 * Allocations and frees at the driver's level.
 *
 * Device memory and stream-ordered memory come as often as a program likes, so their calls have a
 * fast path, with the rules of torch_blocks.c: it changes nothing until it is certain that the
 * event can be recorded completely, and what it needs of a device's memory of one kind is in one
 * cache line of cached counters (state.h). The slow path (allocs.h) records the rest: a new site,
 * an address that was not freed, another family's free, a segment of PyTorch's, memory from before
 * the first mark, an open chain of retries, a journal.
 *
 * Blocks of PyTorch's leave these cached counters valid, because they change nothing in them. Any
 * other event invalidates them.
 */
#include "track/driver_allocs.h"
#include "track/accounting.h"
#include "track/allocs.h"
#include "track/collected.h"
#include "track/errors.h"
#include "track/fast_path.h"
#include "track/freed.h"
#include "track/in_use.h"
#include "track/levels.h"
#include "track/live.h"
#include "track/pools.h"
#include "track/sites.h"
#include "track/slabs.h"
#include "track/surplus.h"
#include "track/thread_id.h"
#include "track/timeline.h"
#include "track/update.h"
#include "track/work.h"

/* The cached counters of a device's memory of one kind. */
struct cache {
	uint64_t class; /* from `flags` on of an event or a record of this memory: class_at() */
	struct gm_usage_record *usage;
	struct gm_pool_record *pool;	  /* of stream-ordered memory, else NULL */
	uint32_t owner;			  /* the pool's index, else GM_NONE */
	uint32_t level;			  /* gm_store_offset of the driver's level */
	uint64_t *last_bytes;		  /* of the open point of the timeline */
	uint64_t end_ns;		  /* when that point ends */
	uint64_t least_bytes, most_bytes; /* totals outside of these change more: leave_range() */
} __attribute__((aligned(64)));

#define CACHED_DEVICES 16u /* the calls of other devices take the slow path */

static struct cache caches[CACHED_DEVICES * 2];

static inline unsigned index_of(unsigned device, unsigned kind)
{
	return device * 2 + (kind == GM_KIND_ASYNC);
}

/*
 * Returns flags, space, kind, device and level of an event or an allocation's record, whose first
 * member is at `flags`, as one number.
 */
static inline uint64_t class_at(const void *flags)
{
	uint64_t class;

	memcpy(&class, flags, sizeof(class));
	return class & ~(UINT64_C(0xff) << 56); /* the byte after the level is another thing */
}

/* ---- filling the cached counters ---- */

/* Returns whether the memory is plain device memory, or stream-ordered memory of a known pool. */
static bool fill_pool(struct cache *cache, unsigned kind, uint32_t owner)
{
	cache->owner = owner;
	cache->pool = kind == GM_KIND_ASYNC ? gm_pool_of_streams(owner) : NULL;
	return kind == GM_KIND_ASYNC ? cache->pool != NULL
				     : kind == GM_KIND_DEVICE && owner == GM_NONE;
}

/* Computes between which totals of the level nothing changes in the timeline but its last value. */
static void fill_range(struct cache *cache, int device, const struct gm_open_series *series)
{
	uint64_t headroom = gm_in_use_driver_headroom(device);

	cache->least_bytes = headroom ? series->min_bytes : UINT64_MAX;
	cache->most_bytes = series->max_bytes < headroom ? series->max_bytes : headroom;
}

/* Fills cached counters. Returns false if the slow path has to record the event. */
static GM_COLD bool fill_cache(uint64_t class, int device, unsigned kind, uint32_t owner)
{
	/* a pointer of the driver's level without flags */
	const struct gm_alloc_record common = {.kind = (uint8_t)kind, .device = (int16_t)device};
	unsigned slot = gm_slot(device), index = index_of((unsigned)device, kind);
	struct gm_open_series *series = &gm_open_series[slot][GM_SERIES_TRACKED];
	struct gm_level_record *level = gm_totals.levels[slot][GM_LEVEL_DRIVER];
	struct cache *cache = &caches[index];

	if (class != class_at(&common.flags) || !level || !gm_totals.usage[slot][kind] ||
	    !gm_fast_path_is_allowed())
		return false;
	gm_track.cached_allocs &= ~(1u << index);
	if (!fill_pool(cache, kind, owner))
		return false;
	if (gm_track.now_ns >= series->end_ns &&
	    !gm_timeline_open(series, device, GM_SERIES_TRACKED))
		return false;
	cache->class = class;
	cache->level = gm_store_offset(level);
	cache->usage = gm_totals.usage[slot][kind];
	cache->last_bytes = &series->record->last_bytes[series->point];
	cache->end_ns = series->end_ns;
	fill_range(cache, device, series);
	gm_track.cached_allocs |= 1u << index;
	return true;
}

/*
 * Returns the cached counters of an event or a record, after filling them if need be; NULL if the
 * slow path has to record the event.
 */
static inline struct cache *cache_of(uint64_t class, int device, unsigned kind, uint32_t owner)
{
	unsigned index = index_of((unsigned)device, kind);
	struct cache *cache;

	if (unlikely((unsigned)device >= CACHED_DEVICES))
		return NULL;
	cache = gm_in_register(&caches[index]);
	if (likely(gm_track.cached_allocs & 1u << index && cache->class == class &&
		   cache->owner == owner && gm_track.now_ns < cache->end_ns))
		return cache;
	return fill_cache(class, device, kind, owner) ? cache : NULL;
}

/* ---- steps of an allocation and of a free ---- */

/*
 * The total left the range of fill_range. `more`: it rose, so that a peak of what is in use may be
 * reached.
 */
static GM_COLD void leave_range(struct cache *cache, int device, uint64_t bytes, bool more)
{
	struct gm_open_series *series = &gm_open_series[gm_slot(device)][GM_SERIES_TRACKED];

	gm_series_set(series, bytes);
	if (more)
		gm_in_use_raise(device);
	fill_range(cache, device, series);
}

static inline void update_timeline(struct cache *cache, int device, uint64_t bytes, bool more)
{
	*cache->last_bytes = bytes;
	if (unlikely(bytes < cache->least_bytes || bytes > cache->most_bytes))
		leave_range(cache, device, bytes, more);
}

/*
 * Logs an event about an allocation of this class, whose size, kind, device and level the event
 * need not have.
 */
static inline void log_call(enum gm_event_op op, const struct gm_event *event,
			    const struct gm_alloc_record *alloc, uint64_t class, uint32_t thread)
{
	struct gm_event_record *logged = gm_fast_path_log();

	if (unlikely(!logged))
		return;
	gm_event_log_describe(logged, event, alloc->bytes, alloc->serial, alloc->site, thread);
	/*
	 * Kind, device and level lie in the same order in both; the space is 0, the rest follows
	 * here.
	 */
	memcpy(&logged->function, &class, sizeof(class));
	logged->function = (uint16_t)event->function;
	logged->op = (uint8_t)op;
	gm_file->event_head++;
}

/* Returns whether a pool should be queried at the time of the event. */
static inline bool is_due(uint32_t index)
{
	const struct gm_pool_record *pool = index == GM_NONE ? NULL : gm_pool_at(index);

	return pool && gm_pool_is_due(pool, gm_track.now_ns);
}

/* Begins an update without invalidating the cached counters of driver memory. */
static inline void begin(const struct gm_event *event)
{
	gm_track_lock();
	gm_settle_blocks();
	gm_update_begin_locked(gm_clock_ns_at(&gm_clock, event->ticks));
	gm_file->events++;
}

/* The records that the memory counts in, all of which exist. */
static inline struct gm_counters counters_of(const struct cache *cache, struct gm_site_record *site,
					     struct gm_level_record *level)
{
	if (!cache->usage)
		__builtin_unreachable();
	return gm_counters_known(site, level, cache->usage);
}

/* ---- allocations ---- */

static inline uint64_t physical_bytes_of(const struct gm_pool_record *pool, uint64_t bytes)
{
	return gm_driver_bytes(GM_LEVEL_DRIVER, pool ? GM_KIND_ASYNC : GM_KIND_DEVICE, bytes);
}

/* Stores whether the pool should be queried at the time of the event. */
static inline bool add_fast(const struct gm_event *event, bool *due)
{
	uint64_t class = class_at(&event->flags), key = event->key, bytes = event->bytes;
	struct gm_index_slot *empty = gm_index_find_empty(&gm_track.live, GM_SPACE_POINTER, key);
	struct gm_latest_site known = gm_known_site(event);
	uint32_t offset = gm_file->emptied, thread;
	int device = event->device;
	struct gm_alloc_record *record;
	struct gm_level_record *level;
	struct gm_site_record *site;
	struct gm_pool_record *pool;
	struct gm_counters counters;
	struct cache *cache;

	if (unlikely(!known.index) || unlikely(!empty) ||
	    unlikely(offset - 1 >= GM_INDEX_VALUES - 1))
		return false;
	cache = cache_of(class, device, event->kind, event->owner);
	if (unlikely(!cache))
		return false;
	thread = gm_calling_thread();
	pool = cache->pool;
	record = gm_store_at(offset);
	site = gm_store_at(known.offset);
	gm_live_reuse(record);
	gm_live_describe(record, event, known.index - 1, thread);
	record->physical_bytes = physical_bytes_of(pool, bytes);
	memcpy(&record->flags, &class, sizeof(class));
	record->extra = (int8_t)event->extra;
	gm_live_publish(record);
	gm_index_fill(&gm_track.live, empty, GM_SPACE_POINTER, key, offset, known.offset);
	level = gm_store_at(cache->level);
	counters = counters_of(cache, site, level);
	counters.extra = event->extra;
	gm_site_catch_up(site);
	gm_count_alloc(&counters, bytes, record->serial, gm_track.now_ns);
	update_timeline(cache, device, level->current_bytes, true);
	if (likely(pool != NULL)) {
		gm_pool_count_alloc(pool, bytes);
		*due = gm_pool_is_due(pool, gm_track.now_ns);
	} else {
		gm_level_physical(level, bytes <= GM_SLAB_LIMIT_BYTES
						 ? gm_slab_add(device, key, record->physical_bytes)
						 : record->physical_bytes);
		gm_note_growth(device, level);
	}
	log_call(GM_OP_ALLOC, event, record, class, thread);
	return true;
}

static GM_COLD bool add_slow(const struct gm_event *event)
{
	gm_record_alloc(event);
	if (event->level == GM_LEVEL_DRIVER)
		gm_retry_succeeded(event);
	return event->kind == GM_KIND_ASYNC && is_due(event->owner);
}

GM_HOT_CODE bool gm_track_alloc(const struct gm_event *event)
{
	bool due = false;

	if (!gm_file || !event->key)
		return false;
	begin(event);
	if (unlikely(!add_fast(event, &due)))
		due = add_slow(event);
	gm_update_end_inline();
	return due;
}

void gm_track_alloc_failed(const struct gm_event *event)
{
	uint32_t site;

	if (!gm_file)
		return;
	gm_update_begin();
	gm_file->events++;
	site = gm_find_or_make_site(event);
	gm_account_failure(event->device, event->level, event->kind,
			   gm_store_record(GM_TABLE_SITES, site));
	gm_track_worked();
	gm_log_event(GM_OP_ALLOC_FAILED, event, 0, site);
	if (event->error == GM_ERROR_OUT_OF_MEMORY) {
		gm_retry_out_of_memory(event, site);
	} else {
		if (event->error == GM_ERROR_TEARDOWN)
			gm_note_refused_at_end();
		gm_retry_failed_otherwise();
		gm_record_error(GM_ERROR_ALLOC_FAILED, event, event->bytes, GM_NONE, site);
	}
	gm_update_end();
}

void gm_track_refused(const struct gm_event *event)
{
	if (!gm_file)
		return;
	gm_update_begin();
	gm_file->events++;
	gm_track_worked();
	gm_retry_out_of_memory(event, GM_NONE);
	gm_update_end();
}

/* ---- frees ---- */

/* Returns the site of an allocation. The index does not have it if the slow path entered it. */
static inline struct gm_site_record *site_of(const struct gm_index_slot *entry,
					     const struct gm_alloc_record *record)
{
	return likely(entry->site) ? gm_store_at(entry->site)
				   : gm_store_record(GM_TABLE_SITES, record->site);
}

/* Stores the index of the pool that should be queried, or GM_NONE. */
static inline bool end_fast(struct gm_index_slot *entry, uint64_t latest,
			    const struct gm_event *event, uint32_t *due)
{
	struct gm_alloc_record *record = gm_store_at(gm_index_value(entry));
	uint64_t class = class_at(&record->flags), bytes = record->bytes;
	int device = record->device;
	struct gm_level_record *level;
	struct gm_site_record *site;
	struct gm_pool_record *pool;
	struct gm_counters counters;
	struct cache *cache;

	if (unlikely(record->serial > latest || record->kind != event->kind))
		return false;
	cache = cache_of(class, device, record->kind, record->owner);
	if (unlikely(!cache))
		return false;
	log_call(GM_OP_FREE, event, record, class, gm_calling_thread());
	pool = cache->pool;
	level = gm_store_at(cache->level);
	site = site_of(entry, record);
	counters = counters_of(cache, site, level);
	counters.extra = record->extra;
	gm_site_catch_up(site);
	gm_count_free(&counters, bytes, 1, false);
	gm_count_if_collected(&counters, record);
	*due = GM_NONE;
	if (likely(pool != NULL)) {
		gm_pool_count_free(pool, bytes);
		gm_pool_count_pending(cache->owner, pool, bytes, event->stream, event->stack);
		if (unlikely(gm_pool_is_due(pool, gm_track.now_ns)))
			*due = cache->owner;
	} else {
		gm_level_physical(level, -(bytes <= GM_SLAB_LIMIT_BYTES
						   ? gm_slab_remove(device, record)
						   : record->physical_bytes));
	}
	update_timeline(cache, device, level->current_bytes, false);
	gm_index_clear(&gm_track.live, entry);
	gm_freed_remember(record, event->stack, 0);
	gm_live_release(record);
	return true;
}

static GM_COLD uint32_t end_slow(const struct gm_index_slot *entry, uint64_t latest,
				 const struct gm_event *event)
{
	struct gm_alloc_record *record = entry ? gm_store_at(gm_index_value(entry))
					       : gm_surplus_find(event->space, event->key);
	uint32_t pool = GM_NONE;

	if (record && record->serial > latest)
		record = NULL;
	if (record && gm_kind_in_pool(record->kind))
		pool = record->owner;
	if (event->error && event->error != GM_ERROR_TEARDOWN)
		gm_record_failed_free(record, event);
	else
		gm_record_free(record, event);
	return event->error || !is_due(pool) ? GM_NONE : pool;
}

GM_HOT_CODE uint32_t gm_track_free_end(uint64_t latest, const struct gm_event *event)
{
	struct gm_index_slot *entry;
	uint32_t due;

	if (!gm_file || !event->key)
		return GM_NONE;
	begin(event);
	entry = gm_index_find(&gm_track.live, event->space, event->key);
	if (unlikely(!entry || event->error || !end_fast(entry, latest, event, &due)))
		due = end_slow(entry, latest, event);
	gm_update_end_inline();
	return due;
}
