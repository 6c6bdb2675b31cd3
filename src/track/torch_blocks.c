/*
 * The blocks of PyTorch's caching allocator.
 *
 * Blocks come and go thousands of times a second, so most of them take a fast path. It has four
 * rules:
 *
 * 1. It changes nothing until it is certain that the event can be recorded completely. If anything
 * is out of the ordinary (the first block, a new site, an address that was not freed, an open chain
 * of retries, a journal, a ring that still grows) it returns false, and the slow path records the
 * event.
 * 2. It looks nothing up twice. The index slot of the address leads to the record and the site;
 * what it needs of the device is in one cache line of cached counters (state.h).
 * 3. It keeps one sum. The bytes of a device's blocks are in three places of the file: in the
 * level, in PyTorch's record, and in the open point of the timeline. While the cached counters are
 * valid only the level is kept up to date, and `by_level` in PyTorch's record says so. settle()
 * copies the sum to the other two before any other event; for a process that was killed the report
 * does.
 * 4. It prefetches. Between two events the program displaces what the tracker has in the
 * processor's caches, so most lines are misses: all of them are requested before the lock is taken,
 * and functions that are rarely called lie apart.
 */
#include "track/torch_blocks.h"
#include "store/journal.h"
#include "track/allocs.h"
#include "track/block_counts.h"
#include "track/capture_pools.h"
#include "track/collected.h"
#include "track/fast_path.h"
#include "track/in_use.h"
#include "track/levels.h"
#include "track/live.h"
#include "track/sites.h"
#include "track/torch_memory.h"
#include "track/torch_trace.h"
#include "track/update.h"
#include "track/work.h"

#include <errno.h>

/* The cached counters of a device's blocks. */
struct cache {
	struct gm_level_record *level;	       /* (atomic: read without the lock for a prefetch) */
	uint64_t beyond_bytes, reserved_bytes; /* as in PyTorch's record */
	uint64_t end_ns;		       /* when the open point of the timeline ends */
	uint64_t min_bytes, max_bytes;	       /* of that point */
	uint64_t headroom_bytes;	       /* up to this level no peak is reached */
	uint64_t peak_serial; /* allocations up to this one were live at the peak */
} __attribute__((aligned(64)));

#define CACHES                                                                                     \
	17u /* by device slot; blocks of other devices, and the host's slot, take the slow path */

GM_HOT_COUNTERS __attribute__((aligned(64))) static struct cache caches[CACHES];

static inline uint64_t bit(unsigned slot)
{
	return 1ull << slot;
}

static inline struct gm_open_series *series_of(unsigned slot)
{
	return &gm_open_series[slot][GM_SERIES_TORCH_ALLOCATED];
}

/* ---- filling and invalidating the cached counters ---- */

/*
 * Brings the record and the timeline up to the level, and the level up to the counts. Until both
 * are stored, `by_level` stays set. From then on blocks are counted under the lock; one that is
 * being counted without it at this moment is found in the counts when the next one comes
 * (stop_counting).
 */
static void settle_device(unsigned slot)
{
	struct gm_open_series *series = series_of(slot);
	struct gm_torch_record *torch = gm_torch_state.devices[slot];
	const struct gm_level_record *level = gm_totals.levels[slot][GM_LEVEL_TORCH];

	if (torch->counting) {
		__atomic_store_n(&gm_counted->device[torch->device].torch, NULL, __ATOMIC_RELEASE);
		gm_torch_follow_counts(torch);
		gm_series_set(series, gm_lower_bytes(torch));
		gm_series_set(series, gm_upper_bytes(torch));
	}
	gm_torch_follow(torch, level);
	gm_series_set(series, level->current_bytes);
	__atomic_store_n(&torch->by_level, 0, __ATOMIC_RELEASE);
}

static GM_COLD void settle(void)
{
	for (uint64_t left = gm_track.cached_blocks; left; left &= left - 1)
		settle_device((unsigned)__builtin_ctzll(left));
	gm_track.cached_blocks = 0;
}

/*
 * Computes what the blocks' bytes may rise to before a peak is reached: that of what is allocated,
 * which also counts when it is reached again, and that of what is in use.
 */
static void fill_headroom(struct cache *cache, int device, unsigned slot)
{
	uint64_t peak = gm_torch_state.devices[slot]->allocated_peak_bytes - cache->beyond_bytes;
	uint64_t in_use = gm_in_use_block_headroom(device);

	cache->headroom_bytes = in_use < peak ? in_use : peak ? peak - 1 : 0;
	cache->peak_serial = gm_peak_of(device, GM_HOLES_TORCH)->serial;
}

/* Fills a device's cached counters. Returns false if the slow path has to record the event. */
static GM_COLD bool fill_cache(int device, unsigned slot)
{
	struct gm_open_series *series = series_of(slot);
	struct gm_torch_record *torch = gm_torch_state.devices[slot];
	struct cache *cache = &caches[slot];

	if (gm_track.cached_blocks & bit(slot))
		settle_device(slot);
	gm_track.cached_blocks &= ~bit(slot);
	__atomic_store_n(&cache->level, gm_totals.levels[slot][GM_LEVEL_TORCH], __ATOMIC_RELAXED);
	if (!slot || !cache->level || !torch || !gm_torch_follows(torch, cache->level) ||
	    !gm_torch_state.seen || !gm_fast_path_is_allowed())
		return false;
	if (gm_track.now_ns >= series->end_ns &&
	    !gm_timeline_open(series, device, GM_SERIES_TORCH_ALLOCATED))
		return false;
	torch->beyond_bytes = torch->allocated_bytes - cache->level->current_bytes;
	cache->beyond_bytes = torch->beyond_bytes;
	cache->reserved_bytes = torch->reserved_bytes;
	cache->end_ns = series->end_ns;
	cache->min_bytes = series->min_bytes;
	cache->max_bytes = series->max_bytes;
	fill_headroom(cache, device, slot);
	__atomic_store_n(&torch->by_level, 1, __ATOMIC_RELEASE);
	gm_track.settle_blocks = settle;
	gm_track.cached_blocks |= bit(slot);
	return true;
}

/* Returns the slot of a device that can have cached counters; for others 0, which never has. */
static inline unsigned slot_of(int device)
{
	return likely((unsigned)device < CACHES - 1) ? (unsigned)device + 1 : 0;
}

#define MOST_AGE_NS 10000000u /* of the time of an event */

/* Sets when the clock is to be read under the lock again. */
static void set_due(struct gm_torch_record *torch)
{
	uint64_t left = series_of(gm_slot(torch->device))->end_ns - gm_track.now_ns;

	torch->due_ticks = gm_clock_ticks_in(&gm_clock, left < MOST_AGE_NS ? left : MOST_AGE_NS);
}

/*
 * Begins to count the blocks of a device without the lock, if that can be done. The records say
 * what there is to say of them.
 */
static void start_counting(int device)
{
	unsigned slot = slot_of(device);
	struct gm_torch_record *torch = gm_torch_state.devices[slot];
	const struct cache *cache = &caches[slot];
	uint64_t headroom, turn;

	if (!gm_counted || !torch || torch->contended || !fill_cache(device, slot))
		return;
	headroom = cache->headroom_bytes;
	if (headroom >= cache->level->peak_bytes)
		headroom = cache->level->peak_bytes ? cache->level->peak_bytes - 1 : 0;
	torch->headroom_bytes = headroom + cache->beyond_bytes;
	torch->lower_bytes = cache->min_bytes + cache->beyond_bytes;
	torch->upper_bytes = (cache->max_bytes < headroom ? cache->max_bytes : headroom) +
			     cache->beyond_bytes;
	torch->reserved_seen_bytes = cache->reserved_bytes;
	set_due(torch);
	turn = (torch->turn >> 1) + 1;
	torch->counts[turn & 1] =
		(struct gm_block_counts){torch->allocated_bytes, torch->allocations, torch->frees,
					 torch->allocated_total_bytes};
	__atomic_store_n(&torch->turn, turn << 1, __ATOMIC_RELEASE);
	__atomic_store_n(&torch->counting, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&gm_counted->device[device].torch, torch, __ATOMIC_RELEASE);
}

/* Ends that: the records say again what there is to say. */
static void stop_counting(int device)
{
	unsigned slot = slot_of(device);
	struct gm_torch_record *torch = gm_torch_state.devices[slot];

	if (!torch || !torch->counting)
		return;
	settle_device(slot);
	__atomic_store_n(&torch->counting, 0, __ATOMIC_RELEASE);
}

/* Returns whether the cached counters are valid, after filling them if need be. */
static inline bool is_cached(const struct cache *cache, int device, unsigned slot)
{
	if (likely(gm_track.cached_blocks >> slot & 1 && gm_track.now_ns < cache->end_ns))
		return true;
	return fill_cache(device, slot);
}

/* ---- steps that few events on the fast path take ---- */

/* The total is a new minimum or maximum of the open point of the timeline. */
static __attribute__((noinline)) void extend_point(struct cache *cache, unsigned slot,
						   uint64_t bytes)
{
	struct gm_open_series *series = series_of(slot);

	gm_series_set(series, bytes);
	cache->min_bytes = series->min_bytes;
	cache->max_bytes = series->max_bytes;
}

/* The total may have reached a peak. */
static GM_COLD void raise_peaks(int device, unsigned slot)
{
	struct gm_torch_record *torch = gm_torch_state.devices[slot];

	gm_in_use_raise(device);
	gm_torch_follow(torch, caches[slot].level);
	gm_torch_raise_peaks(torch);
	gm_torch_raise_holes(torch);
	fill_headroom(&caches[slot], device, slot);
}

/* PyTorch's totals differ from ours and are taken over. */
static GM_COLD struct gm_torch_record *take_over(unsigned slot, struct gm_torch_totals totals)
{
	gm_settle_blocks();
	gm_torch_compare(gm_torch_state.devices[slot], &totals);
	return gm_torch_state.devices[slot];
}

static GM_COLD void take_over_after_alloc(int device, unsigned slot, struct gm_torch_totals totals)
{
	gm_in_use_raise(device);
	gm_torch_raise_holes(take_over(slot, totals));
}

/* ---- steps of an allocation and of a free ---- */

static inline void update_point(struct cache *cache, unsigned slot, uint64_t bytes)
{
	if (unlikely(bytes < cache->min_bytes || bytes > cache->max_bytes))
		extend_point(cache, slot, bytes);
}

static inline bool totals_differ(const struct cache *cache, const struct gm_level_record *level,
				 struct gm_torch_totals totals)
{
	return level->current_bytes + cache->beyond_bytes != totals.allocated_bytes ||
	       cache->reserved_bytes != totals.reserved_bytes;
}

static inline void log_block(enum gm_event_op op, struct gm_where where, uint64_t block,
			     uint64_t bytes, uint64_t serial, uint32_t site, uint32_t stack)
{
	const struct gm_event event =
		gm_block_event(block, bytes, where.device, (struct gm_origin){.stack = stack});
	struct gm_event_record *logged = gm_fast_path_log();

	if (unlikely(!logged))
		return;
	gm_event_log_fill(logged, op, &event, serial, site, where.thread);
	gm_file->event_head++;
}

/*
 * Prefetches what an allocation and a free need, before the lock is taken, which waits for the
 * loads before it. What is read without the lock may be outdated, which does no harm.
 */
static inline void prefetch(uint64_t block, const struct cache *cache)
{
	gm_prefetch(&gm_track);
	__builtin_prefetch(&gm_track.window);
	gm_prefetch(&gm_clock);
	gm_index_prefetch(&gm_track.live, GM_SPACE_TORCH, block);
	gm_prefetch(&gm_file->last_event_ns);
	gm_prefetch(__atomic_load_n(&gm_track.ring.next, __ATOMIC_RELAXED));
	gm_prefetch(__atomic_load_n(&cache->level, __ATOMIC_RELAXED));
}

/* Prefetches the open window of a site, which mostly lies apart from the rest. Under the lock. */
static inline void prefetch_window(const struct gm_site_record *site)
{
	gm_prefetch(&site->windows[gm_track.window[0]]);
}

/*
 * Begins an update without invalidating any cached counters: blocks leave those of the others
 * valid.
 */
static inline void begin(struct gm_where where)
{
	gm_track_lock();
	gm_update_begin_locked(gm_clock_ns_at(&gm_clock, where.ticks));
	gm_file->events++;
}

/* ---- the slow path ---- */

static void first_block(int device)
{
	struct gm_torch_record *torch = gm_torch_of(device);

	if (torch && torch->allocator == GM_TORCH_ASYNC)
		torch->allocator = GM_TORCH_NATIVE;
	__atomic_store_n(&gm_torch_state.seen, true, __ATOMIC_RELAXED);
	gm_track.cached_allocs = 0; /* blocks determine what is in use from now on */
}

/*
 * An event changes the level and then PyTorch's record. If the process is killed in between, the
 * level says what the record should (`by_level`), unless the two differed before.
 */
static void begin_record(struct gm_torch_record *torch)
{
	static const struct gm_level_record none;
	const struct gm_level_record *level =
		gm_totals.levels[gm_slot(torch->device)][GM_LEVEL_TORCH];

	if (!level)
		level = &none;
	if (!gm_torch_follows(torch, level))
		return;
	torch->beyond_bytes = torch->allocated_bytes - level->current_bytes;
	__atomic_store_n(&torch->by_level, 1, __ATOMIC_RELEASE);
}

/*
 * Notes the bytes that PyTorch had allocated when the period began: its present count beyond our
 * blocks.
 */
static void note_before(const struct gm_torch_record *torch, const struct gm_torch_totals *totals)
{
	const struct gm_level_record *level =
		gm_totals.levels[gm_slot(torch->device)][GM_LEVEL_TORCH];
	struct gm_device_record *device =
		gm_store_record(GM_TABLE_DEVICES, (uint32_t)torch->device);
	uint64_t own = level ? level->current_bytes : 0;

	if (device && device->before_torch_bytes == GM_NO_BYTES)
		device->before_torch_bytes =
			totals->allocated_bytes > own ? totals->allocated_bytes - own : 0;
}

static void end_record(struct gm_torch_record *torch, const struct gm_torch_totals *totals)
{
	if (gm_file->periods)
		note_before(torch, totals);
	gm_torch_compare(torch, totals);
	__atomic_store_n(&torch->by_level, 0, __ATOMIC_RELEASE);
}

/* If a block at the address is live, its free was not reported to us. */
static void count_missed_free(uint64_t key)
{
	uint32_t index;
	const struct gm_alloc_record *old = gm_live_find(GM_SPACE_TORCH, key, &index);
	struct gm_torch_record *torch = old ? gm_torch_of(old->device) : NULL;

	if (!torch)
		return;
	torch->frees++;
	torch->freed_total_bytes += old->bytes;
}

static void record_alloc(const struct gm_event *event, const struct gm_torch_totals *totals)
{
	struct gm_torch_record *torch;

	if (!gm_torch_state.seen)
		first_block(event->device);
	torch = gm_torch_of(event->device);
	if (torch)
		begin_record(torch);
	count_missed_free(event->key);
	if (gm_journal_on)
		gm_torch_trace_add(event->key, event->bytes, event->device);
	gm_record_alloc(event);
	if (torch) {
		gm_torch_block_add(torch, event->bytes);
		end_record(torch, totals);
		gm_torch_raise_holes(torch);
	}
	if (gm_open_chains)
		gm_retry_block_allocated();
}

static GM_COLD void add_slow(uint64_t block, uint64_t bytes, int device, struct gm_origin origin,
			     struct gm_torch_totals totals)
{
	const struct gm_event event = gm_block_event(block, bytes, device, origin);
	int saved = errno;

	gm_settle_blocks();
	record_alloc(&event, &totals);
	errno = saved;
}

static void record_free(struct gm_event *event, const struct gm_torch_totals *totals)
{
	struct gm_torch_record *torch = gm_torch_of(event->device);
	struct gm_alloc_record *alloc;
	uint32_t index;

	if (torch)
		begin_record(torch);
	alloc = gm_live_find(GM_SPACE_TORCH, event->key, &index);
	if (alloc) {
		event->bytes = alloc->bytes;
		if (gm_journal_on)
			gm_torch_trace_drop(event->key, event->device);
		gm_log_event(GM_OP_FREE, event, alloc->serial, alloc->site);
		if (torch)
			gm_torch_block_remove(torch, alloc->bytes);
		gm_remove_alloc(alloc, index);
	}
	if (torch)
		end_record(torch, totals);
}

static GM_COLD void end_slow(uint64_t block, int device, struct gm_torch_totals totals)
{
	struct gm_event event =
		gm_block_event(block, 0, device, (struct gm_origin){GM_NONE, GM_NONE, 0});
	int saved = errno;

	gm_settle_blocks();
	record_free(&event, &totals);
	errno = saved;
}

/* ---- allocations ---- */

GM_HOT_CODE void gm_track_block_prefetch(uint64_t block, int device, uint32_t stack)
{
	const char *record;

	if (unlikely(!gm_file))
		return;
	prefetch(block, &caches[slot_of(device)]);
	record = gm_store_at(__atomic_load_n(&gm_file->emptied, __ATOMIC_RELAXED));
	gm_prefetch(record);
	gm_prefetch(record + 64);
	gm_site_prefetch(stack);
}

/* Returns whether a site is that of a block with this stack on this device. */
static inline bool is_site_of(const struct gm_site_record *site, uint32_t stack, int device)
{
	return likely(site->stack == stack && site->kind == GM_KIND_DEVICE &&
		      site->level == GM_LEVEL_TORCH && site->device == device) &&
	       (stack != GM_NONE || site->function == GM_NONE);
}

static inline void fill_record(struct gm_alloc_record *record, uint64_t block, uint64_t bytes,
			       struct gm_where where, uint32_t site)
{
	const struct gm_event event =
		gm_block_event(block, bytes, where.device, (struct gm_origin){0});

	gm_live_fill(record, &event, site, where.thread);
}

static inline bool add_fast(uint64_t block, uint64_t bytes, struct gm_where where, uint32_t stack,
			    struct gm_torch_totals totals)
{
	struct gm_index_slot *empty = gm_index_find_empty(&gm_track.live, GM_SPACE_TORCH, block);
	struct gm_latest_site known = gm_latest_site_of(stack);
	struct gm_site_record *site = gm_store_at(known.offset);
	uint32_t offset = gm_file->emptied, site_index = known.index - 1;
	struct gm_alloc_record *record = gm_store_at(offset);
	int device = where.device;
	unsigned slot = slot_of(device);
	struct cache *cache = gm_in_register(&caches[slot]);
	struct gm_level_record *level;
	struct gm_counters counters;

	prefetch_window(site);
	if (unlikely(!known.index || !is_site_of(site, stack, device) || !empty || !offset ||
		     offset >= GM_INDEX_VALUES || !is_cached(cache, device, slot)))
		return false;
	gm_live_reuse(record);
	fill_record(record, block, bytes, where, site_index);
	gm_index_fill(&gm_track.live, empty, GM_SPACE_TORCH, block, offset, known.offset);
	level = cache->level;
	counters = gm_counters_known(site, level, NULL);
	gm_site_catch_up(site);
	gm_count_alloc(&counters, bytes, record->serial, gm_track.now_ns);
	update_point(cache, slot, level->current_bytes);
	log_block(GM_OP_ALLOC, where, block, bytes, record->serial, site_index, stack);
	if (unlikely(totals_differ(cache, level, totals)))
		take_over_after_alloc(device, slot, totals);
	else if (unlikely(level->current_bytes > cache->headroom_bytes))
		raise_peaks(device, slot);
	return true;
}

GM_HOT_CODE void gm_track_block(uint64_t block, uint64_t bytes, struct gm_where where,
				struct gm_origin origin, struct gm_torch_totals totals)
{
	if (unlikely(!gm_file || !block))
		return;
	begin(where);
	if (unlikely(gm_track.captures))
		gm_capture_block(block);
	if (unlikely(!add_fast(block, bytes, where, origin.stack, totals)))
		add_slow(block, bytes, where.device, origin, totals);
	gm_update_end_inline();
}

/* ---- frees ---- */

/* The block may be from before the first mark. Such blocks soon become rare. */
static GM_COLD void remove_if_stray(struct gm_site_record *site,
				    const struct gm_alloc_record *record)
{
	if (record->flags & GM_ALLOC_BEFORE_MARK)
		gm_site_remove_stray(site, record->bytes, 1);
}

static inline bool end_fast(uint64_t block, struct gm_where where, struct gm_torch_totals totals)
{
	struct gm_index_slot *entry = gm_index_find(&gm_track.live, GM_SPACE_TORCH, block);
	int device = where.device;
	unsigned slot = slot_of(device);
	struct cache *cache = gm_in_register(&caches[slot]);
	struct gm_alloc_record *record;
	struct gm_level_record *level;
	struct gm_site_record *site;
	struct gm_counters counters;
	uint64_t bytes;

	if (unlikely(!entry))
		return false;
	record = gm_store_at(gm_index_value(entry));
	site = gm_store_at(entry->site);
	prefetch_window(site);
	if (unlikely(site->device != device || !is_cached(cache, device, slot)))
		return false;
	bytes = record->bytes;
	log_block(GM_OP_FREE, where, block, bytes, record->serial, record->site, GM_NONE);
	if (record->serial <= cache->peak_serial)
		gm_peak_keep(&gm_peaks[slot][GM_HOLES_TORCH], GM_HOLES_TORCH, record);
	level = cache->level;
	counters = gm_counters_known(site, level, NULL);
	gm_site_catch_up(site);
	gm_count_free(&counters, bytes, 1, false);
	if (unlikely(record->serial < gm_file->first_mark_serial))
		remove_if_stray(site, record);
	gm_count_if_collected(&counters, record);
	update_point(cache, slot, level->current_bytes);
	gm_index_clear(&gm_track.live, entry);
	gm_live_release(record);
	if (unlikely(totals_differ(cache, level, totals)))
		take_over(slot, totals);
	return true;
}

GM_HOT_CODE void gm_track_block_free(uint64_t block, struct gm_where where,
				     struct gm_torch_totals totals)
{
	if (unlikely(!gm_file || !block))
		return;
	prefetch(block, &caches[slot_of(where.device)]);
	begin(where);
	if (unlikely(!end_fast(block, where, totals)))
		end_slow(block, where.device, totals);
	gm_update_end_inline();
}

/* ---- a sampled recording ---- */

/*
 * Counts a block that came, or (less than 0 bytes) went, in its level. Returns false for one that
 * went and had come before the recording.
 */
static bool change_level(struct gm_level_record *level, int64_t bytes)
{
	if (bytes > 0)
		gm_level_add(level, (uint64_t)bytes, gm_track.now_ns);
	else if (level->current_bytes < (uint64_t)-bytes)
		return false;
	else
		gm_level_remove(level, (uint64_t)-bytes, 1);
	return true;
}

static void change_records(int64_t bytes, int device, struct gm_torch_totals totals)
{
	struct gm_torch_record *torch = gm_torch_of(device);
	struct gm_level_record *level = gm_level_of(device, GM_LEVEL_TORCH);

	if (torch)
		begin_record(torch);
	if (level && change_level(level, bytes)) {
		gm_timeline_set(device, GM_SERIES_TORCH_ALLOCATED, level->current_bytes);
		if (torch && bytes > 0)
			gm_torch_block_add(torch, (uint64_t)bytes);
		else if (torch)
			gm_torch_block_remove(torch, (uint64_t)-bytes);
		gm_in_use_raise(device);
	}
	if (torch)
		end_record(torch, &totals);
	if (torch && bytes > 0)
		gm_torch_raise_holes(torch);
	if (gm_open_chains && bytes > 0)
		gm_retry_block_allocated();
}

/* Counts a block in every record that says something of blocks, as a full recording does. */
static GM_COLD void change_slow(int64_t bytes, int device, struct gm_torch_totals totals)
{
	int saved = errno;

	gm_settle_blocks();
	stop_counting(device);
	if (!gm_torch_state.seen)
		first_block(device);
	if (bytes > 0)
		gm_track_worked();
	gm_file->events++;
	change_records(bytes, device, totals);
	start_counting(device);
	errno = saved;
}

/* Counts a block, under the lock. The time of the event is known. */
static void change(int64_t bytes, int device, struct gm_torch_totals totals)
{
	struct gm_torch_record *torch =
		gm_counted ? gm_counted_torch(gm_counted_device(device)) : NULL;

	if (!torch || gm_track.now_ns >= series_of(slot_of(device))->end_ns ||
	    !gm_count_block(torch, bytes, totals))
		change_slow(bytes, device, totals);
	else
		set_due(torch);
}

/* Begins an update; gm_update_end_inline ends it. `events` is kept with the counts. */
static void begin_sampled(struct gm_where where)
{
	gm_track_lock();
	gm_update_begin_locked(gm_clock_ns_at(&gm_clock, where.ticks));
}

void gm_track_sampled_block(uint64_t block, uint64_t bytes, struct gm_where where,
			    struct gm_origin origin, struct gm_torch_totals totals)
{
	if (unlikely(!gm_file || !block))
		return;
	begin_sampled(where);
	if (unlikely(gm_track.captures))
		gm_capture_block(block);
	gm_sample_end(block); /* its free was not reported */
	gm_sample_add(block, bytes, where.device, origin);
	change((int64_t)bytes, where.device, totals);
	gm_update_end_inline();
}

void gm_track_unsampled_block(uint64_t bytes, struct gm_where where, struct gm_torch_totals totals)
{
	if (unlikely(!gm_file))
		return;
	begin_sampled(where);
	change((int64_t)bytes, where.device, totals);
	gm_update_end_inline();
}

void gm_track_sampled_block_free(uint64_t block, uint64_t bytes, struct gm_where where,
				 struct gm_torch_totals totals)
{
	if (unlikely(!gm_file || !block))
		return;
	begin_sampled(where);
	gm_sample_end(block);
	change(-(int64_t)bytes, where.device, totals);
	gm_update_end_inline();
}
