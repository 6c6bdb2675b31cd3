/*
 * PyTorch's blocks, the events that come thousands of times a second: the usual ones straight through,
 * with each address worked out once. What is unusual (a first block, a new site, an address that was
 * not freed, a retry under way, a journal) is left to torch.c, before anything was changed.
 *
 * What an event of a device needs from here and there is held ready in one line until an event of any
 * other kind comes. Functions that are seldom called are kept apart: code is missed in the caches as
 * data is.
 */
#if defined(__GNUC__) && !defined(__clang__)
/* Two counters in one register cost more to put together and take apart than they save; bytes between
 * pieces of code are missed as others are. */
#pragma GCC optimize("no-tree-slp-vectorize", "no-align-jumps", "no-align-labels", "no-align-loops")
#endif

#include "track/book.h"
#include "track/retries.h"

#include <errno.h>

#define SELDOM __attribute__((noinline, cold))
#define likely(condition)   __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/* A device's books as they are while its bit in gm_track.blocks_ready is set. */
struct ready {
	struct gm_level_record *level;
	struct gm_torch_record *torch;
	uint64_t *last_bytes;	      /* of the open point of the series of what is allocated */
	uint64_t end_ns;	      /* of that point */
	uint64_t min_bytes, max_bytes; /* in it */
	uint64_t in_use_bytes;	      /* gm_in_use_room */
	uint64_t peak_serial;	      /* blocks up to this one were there at the peak */
} __attribute__((aligned(64)));

static struct ready ready[GM_SLOTS];

/* The host's slot and the last one, of several devices, are never ready. */
static inline uint64_t bit(unsigned slot)
{
	return 1ull << (slot & 63);
}

static void get_series(struct ready *books, const struct gm_open_series *series)
{
	books->last_bytes = &series->record->last_bytes[series->point];
	books->end_ns = series->end_ns;
	books->min_bytes = series->min_bytes;
	books->max_bytes = series->max_bytes;
}

/* False unless all are there and nothing but books is to be kept. */
static SELDOM bool get_ready(int device, unsigned slot)
{
	struct gm_open_series *series = &gm_open_series[slot][GM_SERIES_TORCH_ALLOCATED];
	struct ready *books = &ready[slot];

	gm_track.blocks_ready &= ~bit(slot);
	books->level = gm_track.levels[slot][GM_LEVEL_TORCH];
	books->torch = gm_torch_state.devices[slot];
	if (!slot || !books->level || !books->torch || !gm_torch_state.seen ||
	    gm_open_chains || gm_journal_on || gm_file->event_head < GM_RING_RECORDS)
		return false;
	if (gm_track.now_ns >= series->end_ns && !gm_timeline_open(series, device, GM_SERIES_TORCH_ALLOCATED))
		return false;
	get_series(books, series);
	books->in_use_bytes = gm_in_use_room(device);
	books->peak_serial = gm_peak_of(device, GM_HOLES_TORCH)->serial;
	gm_track.blocks_ready |= bit(slot);
	return true;
}

/* The slot of a device that can be ready; else a slot that never is. */
static inline unsigned slot_of(int device)
{
	return likely((unsigned)device < GM_DEVICES - 1) ? (unsigned)device + 1 : 0;
}

static inline bool usual(const struct ready *books, int device, unsigned slot)
{
	if (likely(gm_track.blocks_ready & bit(slot) && gm_track.now_ns < books->end_ns))
		return true;
	return get_ready(device, slot);
}

/* ---- what few events come to ---- */

static SELDOM void series_value(unsigned slot, uint64_t bytes)
{
	struct gm_open_series *series = &gm_open_series[slot][GM_SERIES_TORCH_ALLOCATED];

	gm_series_value(series, bytes);
	get_series(&ready[slot], series);
}

static SELDOM void in_use_value(int device, unsigned slot, uint64_t bytes)
{
	gm_in_use_raise(device);
	ready[slot].in_use_bytes = bytes;
}

static SELDOM void compare(struct gm_torch_record *torch, struct gm_torch_totals totals)
{
	gm_torch_compare(torch, &totals);
	gm_track.blocks_ready = 0;
}

/* The peak is reached or passed. */
static SELDOM void reach_peak(struct gm_torch_record *torch, unsigned slot)
{
	gm_torch_raise_peaks(torch);
	gm_torch_raise_holes(torch);
	ready[slot].peak_serial = gm_peak_of(torch->device, GM_HOLES_TORCH)->serial;
}

/* ---- the steps of both ---- */

static inline void note_series(struct ready *books, unsigned slot, uint64_t bytes)
{
	*books->last_bytes = bytes;
	if (unlikely(bytes < books->min_bytes || bytes > books->max_bytes))
		series_value(slot, bytes);
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

/* For writing: another thread's processor may have it. */
static inline void fetch(const void *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/*
 * Has what both will need on its way into the cache, all at once, before the lock is taken: that waits for
 * what was asked for. A guess that does no harm.
 */
static inline void prefetch(uint64_t block, const struct ready *books)
{
	fetch(&gm_track);
	gm_index_prefetch(&gm_live.index, GM_SPACE_TORCH, block);
	fetch(&gm_file->last_event_ns);
	fetch(__atomic_load_n(&gm_ring.next, __ATOMIC_RELAXED));
	fetch(__atomic_load_n(&books->level, __ATOMIC_RELAXED));
	fetch(__atomic_load_n(&books->torch, __ATOMIC_RELAXED));
	fetch(__atomic_load_n(&books->last_bytes, __ATOMIC_RELAXED));
}

/* Its open window, mostly, lies apart from the rest of a site. Under the lock. */
static inline void prefetch_window(const struct gm_site_record *site)
{
	fetch(&site->windows[gm_track.window[0]]);
}

/* In a register from here on, for less code than the address itself. */
static inline struct ready *books_of(unsigned slot)
{
	struct ready *books = &ready[slot];

	__asm__("" : "+r"(books));
	return books;
}

static inline void enter(void)
{
	gm_track_entered();
	gm_file->events++;
}

/* ---- allocations ---- */

GM_HOT_CODE void gm_track_block_prefetch(uint64_t block, int device)
{
	const char *record;

	if (unlikely(!gm_file))
		return;
	prefetch(block, &ready[slot_of(device)]);
	record = gm_store_at(__atomic_load_n(&gm_live.empty, __ATOMIC_RELAXED));
	fetch(record);
	fetch(record + 64);
}

static SELDOM void add_unusual(uint64_t block, uint64_t bytes, int device, struct gm_origin origin,
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

	gm_track.blocks_ready = 0;
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
	uint32_t spot = gm_live.empty, site_number = known.number - 1;
	struct gm_alloc_record *record = gm_store_at(spot);
	int device = where.device;
	unsigned slot = slot_of(device);
	struct ready *books = books_of(slot);
	struct gm_level_record *level;
	struct gm_torch_record *torch;

	prefetch_window(site);
	if (unlikely(!known.number || !is_site(site, stack, device) || !place ||
		     spot >= GM_INDEX_MOST_NUMBERS || !usual(books, device, slot)))
		return false;
	gm_live.empty = record->site;
	fill(record, block, bytes, where, site_number);
	gm_index_put(&gm_live.index, place, GM_SPACE_TORCH, block, spot, known.spot);
	level = books->level;
	gm_site_add(site, bytes, record->serial, level);
	gm_level_add(level, bytes, site);
	note_series(books, slot, level->current_bytes);
	if (unlikely(level->current_bytes > books->in_use_bytes))
		in_use_value(device, slot, level->current_bytes);
	tell(GM_OP_ALLOC, where, block, bytes, record->serial, site_number, stack);
	torch = books->torch;
	gm_torch_block_add(torch, bytes);
	if (unlikely(torch->allocated_bytes != totals.allocated_bytes ||
		     torch->reserved_bytes != totals.reserved_bytes))
		compare(torch, totals);
	if (unlikely(torch->allocated_bytes >= torch->allocated_peak_bytes))
		reach_peak(torch, slot);
	return true;
}

GM_HOT_CODE void gm_track_block(uint64_t block, uint64_t bytes, struct gm_where where, struct gm_origin origin,
			struct gm_torch_totals totals)
{
	if (unlikely(!gm_file || !block))
		return;
	gm_lock_acquire(&gm_track.lock);
	enter();
	if (unlikely(!add(block, bytes, where, origin.stack, totals)))
		add_unusual(block, bytes, where.device, origin, totals);
	gm_track_leaving();
}

/* ---- frees ---- */

static SELDOM void end_unusual(uint64_t block, int device, struct gm_torch_totals totals)
{
	struct gm_event event = {.key = block,
				 .space = GM_SPACE_TORCH,
				 .kind = GM_KIND_DEVICE,
				 .level = GM_LEVEL_TORCH,
				 .device = (int16_t)device,
				 .stack = GM_NONE,
				 .function = GM_NONE};
	int saved = errno;

	gm_track.blocks_ready = 0;
	gm_torch_block_free(&event, &totals);
	errno = saved;
}

/* Of those that were there before the first mark there are soon no more. */
static SELDOM bool before_mark(const struct gm_alloc_record *record)
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
	struct gm_torch_record *torch;
	struct gm_level_record *level;
	struct gm_site_record *site;
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
	torch = books->torch;
	gm_torch_block_end(torch, bytes);
	if (record->serial <= books->peak_serial)
		gm_peak_keep(&gm_peaks[slot][GM_HOLES_TORCH], GM_HOLES_TORCH, record);
	level = books->level;
	gm_site_remove(site, bytes,
		       unlikely(record->serial < gm_file->first_mark_serial) && before_mark(record), level);
	gm_level_remove(level, bytes);
	note_series(books, slot, level->current_bytes);
	gm_index_take(&gm_live.index, place);
	gm_live_put(record);
	if (unlikely(torch->allocated_bytes != totals.allocated_bytes ||
		     torch->reserved_bytes != totals.reserved_bytes))
		compare(torch, totals);
	return true;
}

GM_HOT_CODE void gm_track_block_free(uint64_t block, struct gm_where where, struct gm_torch_totals totals)
{
	if (unlikely(!gm_file || !block))
		return;
	prefetch(block, &ready[slot_of(where.device)]);
	gm_lock_acquire(&gm_track.lock);
	enter();
	if (unlikely(!end(block, where, totals)))
		end_unusual(block, where.device, totals);
	gm_track_leaving();
}
