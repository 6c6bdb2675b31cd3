/*
 * PyTorch's blocks, the events that come thousands of times a second: the usual ones straight through,
 * with each address worked out once. What is unusual (a first block, a new site, an address that was
 * not freed, a retry under way, a journal) is left to torch.c, before anything was changed.
 *
 * What an event of a device needs from here and there is held ready in one line until an event of any
 * other kind comes. As long as it is, the level's totals alone are kept up to date: what PyTorch's record
 * and the open point of the timeline say is the same and follows when something else comes, or in the
 * report of a process that was killed before (repair.c). Functions that are seldom called are kept
 * apart. All this because lines and pages, of code as of data, are missed in the caches each time.
 */
#if defined(__GNUC__) && !defined(__clang__)
/* Two counters in one register cost more to put together and take apart than they save; bytes between
 * pieces of code are missed as others are. */
#pragma GCC optimize("no-tree-slp-vectorize", "no-align-jumps", "no-align-labels", "no-align-loops")
#endif

#include "track/book.h"
#include "track/collected.h"
#include "track/retries.h"

#include <errno.h>

#define likely(condition)   __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/* A device's books as they are while its bit in gm_track.blocks_ready is set. */
struct ready {
	struct gm_level_record *level;	       /* (atomic: a guess without the lock) */
	uint64_t beyond_bytes, reserved_bytes; /* of PyTorch's record */
	uint64_t end_ns;		       /* of the open point of the series of what is allocated */
	uint64_t min_bytes, max_bytes;	       /* in it */
	uint64_t most_bytes;		       /* past them a peak may be reached */
	uint64_t peak_serial;		       /* blocks up to this one were there at the peak */
} __attribute__((aligned(64)));

#define READY_SLOTS 17u /* the blocks of devices beyond go the general way, as what is said of the host's slot */

GM_HOT_COUNTERS static struct ready ready[READY_SLOTS];

static inline uint64_t bit(unsigned slot)
{
	return 1ull << slot;
}

static inline struct gm_open_series *series_of(unsigned slot)
{
	return &gm_open_series[slot][GM_SERIES_TORCH_ALLOCATED];
}

/* What the level alone says while the books are ready. It says so until all is written, should that not be. */
static void follow(unsigned slot)
{
	const struct gm_open_series *series = series_of(slot);
	struct gm_torch_record *torch = gm_torch_state.devices[slot];
	const struct ready *books = &ready[slot];

	gm_torch_follow(torch, books->level);
	series->record->last_bytes[series->point] = books->level->current_bytes;
	__atomic_store_n(&torch->by_level, 0, __ATOMIC_RELEASE);
}

GM_COLD void gm_blocks_settle(void)
{
	for (uint64_t left = gm_track.blocks_ready; left; left &= left - 1)
		follow((unsigned)__builtin_ctzll(left));
	gm_track.blocks_ready = 0;
}

/* Below the peaks of what is allocated, which counts when it is reached again, and of what is in use. */
static void get_peaks(struct ready *books, int device, unsigned slot)
{
	uint64_t peak = gm_torch_state.devices[slot]->allocated_peak_bytes - books->beyond_bytes;
	uint64_t room = gm_in_use_room(device);

	books->most_bytes = room < peak ? room : peak ? peak - 1 : 0;
	books->peak_serial = gm_peak_of(device, GM_HOLES_TORCH)->serial;
}

/* False unless all are there and nothing but books is to be kept. */
static GM_COLD bool get_ready(int device, unsigned slot)
{
	struct gm_open_series *series = series_of(slot);
	struct gm_torch_record *torch = gm_torch_state.devices[slot];
	struct ready *books = &ready[slot];

	if (gm_track.blocks_ready & bit(slot))
		follow(slot);
	gm_track.blocks_ready &= ~bit(slot);
	__atomic_store_n(&books->level, gm_totals.levels[slot][GM_LEVEL_TORCH], __ATOMIC_RELAXED);
	if (!slot || !books->level || !torch || !gm_torch_follows(torch, books->level) ||
	    !gm_torch_state.seen || gm_open_chains || gm_journal_on || gm_file->event_head < GM_RING_RECORDS)
		return false;
	if (gm_track.now_ns >= series->end_ns && !gm_timeline_open(series, device, GM_SERIES_TORCH_ALLOCATED))
		return false;
	torch->beyond_bytes = torch->allocated_bytes - books->level->current_bytes;
	books->beyond_bytes = torch->beyond_bytes;
	books->reserved_bytes = torch->reserved_bytes;
	books->end_ns = series->end_ns;
	books->min_bytes = series->min_bytes;
	books->max_bytes = series->max_bytes;
	get_peaks(books, device, slot);
	__atomic_store_n(&torch->by_level, 1, __ATOMIC_RELEASE);
	gm_track.blocks_ready |= bit(slot);
	return true;
}

/* The slot of a device that can be ready; else a slot that never is. */
static inline unsigned slot_of(int device)
{
	return likely((unsigned)device < READY_SLOTS - 1) ? (unsigned)device + 1 : 0;
}

static inline bool usual(const struct ready *books, int device, unsigned slot)
{
	if (likely(gm_track.blocks_ready & bit(slot) && gm_track.now_ns < books->end_ns))
		return true;
	return get_ready(device, slot);
}

/* ---- what few events come to ---- */

/* A new high or low of the open point: many, as long as a point is no longer than a program's steps. */
static __attribute__((noinline)) void note_extreme(struct ready *books, unsigned slot, uint64_t bytes)
{
	struct gm_open_series *series = series_of(slot);

	gm_series_value(series, bytes);
	books->min_bytes = series->min_bytes;
	books->max_bytes = series->max_bytes;
}

/* A peak may be reached or passed. */
static GM_COLD void note_peaks(int device, unsigned slot)
{
	struct gm_torch_record *torch = gm_torch_state.devices[slot];

	gm_in_use_raise(device);
	gm_torch_follow(torch, ready[slot].level);
	gm_torch_raise_peaks(torch);
	gm_torch_raise_holes(torch);
	get_peaks(&ready[slot], device, slot);
}

/* PyTorch counts otherwise than we do. */
static GM_COLD struct gm_torch_record *compare(unsigned slot, struct gm_torch_totals totals)
{
	gm_blocks_settle();
	gm_torch_compare(gm_torch_state.devices[slot], &totals);
	return gm_torch_state.devices[slot];
}

static GM_COLD void compare_more(int device, unsigned slot, struct gm_torch_totals totals)
{
	gm_in_use_raise(device);
	gm_torch_raise_holes(compare(slot, totals));
}

/* ---- the steps of both ---- */

static inline void note_series(struct ready *books, unsigned slot, uint64_t bytes)
{
	if (unlikely(bytes < books->min_bytes || bytes > books->max_bytes))
		note_extreme(books, slot, bytes);
}

/* Ours and PyTorch's own. */
static inline bool differ(const struct ready *books, const struct gm_level_record *level,
			  struct gm_torch_totals totals)
{
	return level->current_bytes + books->beyond_bytes != totals.allocated_bytes ||
	       books->reserved_bytes != totals.reserved_bytes;
}

static inline void tell(enum gm_event_op op, struct gm_where where, uint64_t block, uint64_t bytes,
			uint64_t serial, uint32_t site, uint32_t stack)
{
	const struct gm_event event = {.key = block, .bytes = bytes, .stack = stack,
				       .function = GM_NONE, .device = (int16_t)where.device,
				       .space = GM_SPACE_TORCH, .kind = GM_KIND_DEVICE,
				       .level = GM_LEVEL_TORCH};

	if (unlikely(!gm_ring.left))
		gm_history_turn();
	gm_history_fill(gm_ring_take(), op, &event, serial, site, where.thread);
	gm_file->event_head++;
}

/*
 * Has what both will need on its way into the cache, all at once, before the lock is taken: that waits for
 * what was asked for. A guess that does no harm.
 */
static inline void prefetch(uint64_t block, const struct ready *books)
{
	gm_prefetch(&gm_track);
	gm_prefetch(&gm_clock);
	gm_index_prefetch(&gm_live.index, GM_SPACE_TORCH, block);
	gm_prefetch(&gm_file->last_event_ns);
	gm_prefetch(__atomic_load_n(&gm_ring.next, __ATOMIC_RELAXED));
	gm_prefetch(__atomic_load_n(&books->level, __ATOMIC_RELAXED));
}

/* Its open window, mostly, lies apart from the rest of a site. Under the lock. */
static inline void prefetch_window(const struct gm_site_record *site)
{
	gm_prefetch(&site->windows[gm_track.window[0]]);
}

/* In a register from here on, for less code than the address itself. */
static inline struct ready *books_of(unsigned slot)
{
	struct ready *books = &ready[slot];

	__asm__("" : "+r"(books));
	return books;
}

static inline void enter(struct gm_where where)
{
	gm_track_entered(gm_clock_ns_at(&gm_clock, where.ticks));
	gm_file->events++;
}

/* ---- allocations ---- */

GM_HOT_CODE void gm_track_block_prefetch(uint64_t block, int device)
{
	const char *record;

	if (unlikely(!gm_file))
		return;
	prefetch(block, &ready[slot_of(device)]);
	record = gm_store_at(__atomic_load_n(&gm_file->emptied, __ATOMIC_RELAXED));
	gm_prefetch(record);
	gm_prefetch(record + 64);
}

static GM_COLD void add_unusual(uint64_t block, uint64_t bytes, int device, struct gm_origin origin,
			       struct gm_torch_totals totals)
{
	const struct gm_event event = {.key = block,
				       .bytes = bytes,
				       .device = (int16_t)device,
				       .space = GM_SPACE_TORCH,
				       .kind = GM_KIND_DEVICE,
				       .level = GM_LEVEL_TORCH,
				       .owner = GM_NONE,
				       .function = GM_NONE,
				       .stack = origin.stack,
				       .caller_module = origin.module};
	int saved = errno;

	gm_blocks_settle();
	gm_torch_block(&event, &totals);
	errno = saved;
}

/* Whether what its stack last led to is the site of a block. */
static inline bool is_site(const struct gm_site_record *site, uint32_t stack, int device)
{
	return likely(site->stack == stack && site->kind == GM_KIND_DEVICE &&
		      site->level == GM_LEVEL_TORCH && site->device == device) &&
	       (stack != GM_NONE || site->function == GM_NONE);
}

static inline void fill(struct gm_alloc_record *record, uint64_t block, uint64_t bytes,
			struct gm_where where, uint32_t site)
{
	const struct gm_event event = {.key = block, .bytes = bytes, .device = (int16_t)where.device,
				       .space = GM_SPACE_TORCH, .kind = GM_KIND_DEVICE,
				       .level = GM_LEVEL_TORCH, .owner = GM_NONE};

	gm_live_fill(record, &event, site, where.thread);
}

static inline bool add(uint64_t block, uint64_t bytes, struct gm_where where, uint32_t stack,
		       struct gm_torch_totals totals)
{
	struct gm_index_slot *place = gm_index_place(&gm_live.index, GM_SPACE_TORCH, block);
	struct gm_latest_site known = gm_site_latest(stack);
	struct gm_site_record *site = gm_store_at(known.spot);
	uint32_t spot = gm_file->emptied, site_number = known.number - 1;
	struct gm_alloc_record *record = gm_store_at(spot);
	int device = where.device;
	unsigned slot = slot_of(device);
	struct ready *books = books_of(slot);
	struct gm_level_record *level;
	struct gm_counters counters;

	prefetch_window(site);
	if (unlikely(!known.number || !is_site(site, stack, device) || !place || !spot ||
		     spot >= GM_INDEX_MOST_NUMBERS || !usual(books, device, slot)))
		return false;
	gm_live_reuse(record);
	fill(record, block, bytes, where, site_number);
	gm_index_put(&gm_live.index, place, GM_SPACE_TORCH, block, spot, known.spot);
	level = books->level;
	counters = gm_counters_known(site, level, NULL);
	gm_site_windows(site);
	gm_count_alloc(&counters, bytes, record->serial, gm_track.now_ns);
	note_series(books, slot, level->current_bytes);
	tell(GM_OP_ALLOC, where, block, bytes, record->serial, site_number, stack);
	if (unlikely(differ(books, level, totals)))
		compare_more(device, slot, totals);
	else if (unlikely(level->current_bytes > books->most_bytes))
		note_peaks(device, slot);
	return true;
}

GM_HOT_CODE void gm_track_block(uint64_t block, uint64_t bytes, struct gm_where where, struct gm_origin origin,
			struct gm_torch_totals totals)
{
	if (unlikely(!gm_file || !block))
		return;
	gm_track_lock();
	enter(where);
	if (unlikely(!add(block, bytes, where, origin.stack, totals)))
		add_unusual(block, bytes, where.device, origin, totals);
	gm_track_leaving();
}

/* ---- frees ---- */

static GM_COLD void end_unusual(uint64_t block, int device, struct gm_torch_totals totals)
{
	struct gm_event event = {.key = block,
				 .space = GM_SPACE_TORCH,
				 .kind = GM_KIND_DEVICE,
				 .level = GM_LEVEL_TORCH,
				 .device = (int16_t)device,
				 .stack = GM_NONE,
				 .function = GM_NONE};
	int saved = errno;

	gm_blocks_settle();
	gm_torch_block_free(&event, &totals);
	errno = saved;
}

/* Of those that were there before the first mark there are soon no more. */
static GM_COLD bool before_mark(const struct gm_alloc_record *record)
{
	return record->flags & GM_ALLOC_BEFORE_MARK;
}

static inline bool end(uint64_t block, struct gm_where where, struct gm_torch_totals totals)
{
	struct gm_index_slot *place = gm_index_find(&gm_live.index, GM_SPACE_TORCH, block);
	int device = where.device;
	unsigned slot = slot_of(device);
	struct ready *books = books_of(slot);
	struct gm_alloc_record *record;
	struct gm_level_record *level;
	struct gm_site_record *site;
	struct gm_counters counters;
	uint64_t bytes;

	if (unlikely(!place))
		return false;
	record = gm_store_at(gm_index_number(place));
	site = gm_store_at(place->site);
	prefetch_window(site);
	if (unlikely(site->device != device || !usual(books, device, slot)))
		return false;
	bytes = record->bytes;
	tell(GM_OP_FREE, where, block, bytes, record->serial, record->site, GM_NONE);
	if (record->serial <= books->peak_serial)
		gm_peak_keep(&gm_peaks[slot][GM_HOLES_TORCH], GM_HOLES_TORCH, record);
	level = books->level;
	counters = gm_counters_known(site, level, NULL);
	gm_site_windows(site);
	gm_count_free(&counters, bytes, 1,
		      unlikely(record->serial < gm_file->first_mark_serial) && before_mark(record));
	gm_note_collected(&counters, record);
	note_series(books, slot, level->current_bytes);
	gm_index_take(&gm_live.index, place);
	gm_live_put(record);
	if (unlikely(differ(books, level, totals)))
		compare(slot, totals);
	return true;
}

GM_HOT_CODE void gm_track_block_free(uint64_t block, struct gm_where where, struct gm_torch_totals totals)
{
	if (unlikely(!gm_file || !block))
		return;
	prefetch(block, &ready[slot_of(where.device)]);
	gm_track_lock();
	enter(where);
	if (unlikely(!end(block, where, totals)))
		end_unusual(block, where.device, totals);
	gm_track_leaving();
}
