/*
 * What the files of track/ share: the lock, the caches of record addresses, and the small steps that
 * an event is made of. Private to track/.
 */
#ifndef GM_TRACK_STATE_H
#define GM_TRACK_STATE_H

#include "account/counters.h"
#include "account/site_windows.h"
#include "stack/arena.h"
#include "store/journal.h"
#include "store/layout.h"
#include "store/lock.h"
#include "store/writer.h"
#include "track/clock.h"
#include "track/event.h"

#include <string.h>

/*
 * `lock` guards everything in track/ and the counters of the file. It is held for table updates only: no stack
 * is taken, no CUDA call is made and nothing is waited for under it. Only the functions below touch it.
 */
struct gm_track {
	struct gm_lock lock;
	uint8_t window[4];	/* the open one and how it came about, as a site has it from window_current on */
	uint32_t calls_ready;	/* bit i: ready[i] of calls.c says how things are */
	uint64_t now_ns;	/* time of the event in hand */
	uint64_t window_end; /* the count of frees at which the next window is due, UINT64_MAX: at a mark */
	uint64_t blocks_ready;	/* the same of slot i, of blocks.c */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct gm_track) == 64, "what every event needs is one cache line");

extern struct gm_track gm_track __attribute__((visibility("hidden")));

/* Not from a signal handler. */
static inline void gm_track_lock(void)
{
	gm_lock_acquire(&gm_track.lock);
}

/* False where the lock is held. Safe in a signal handler. */
static inline bool gm_track_try_lock(void)
{
	return gm_lock_try(&gm_track.lock);
}

static inline void gm_track_unlock(void)
{
	gm_lock_release(&gm_track.lock);
}

/* The records in use, NULL where there is none yet. */
struct gm_totals {
	struct gm_level_record *levels[GM_SLOTS][GM_LEVELS];
	struct gm_usage_record *usage[GM_SLOTS][GM_KINDS];
};
extern struct gm_totals gm_totals __attribute__((visibility("hidden")));

/* uthash's memory, the live table's index and the history of frees. */
extern struct gm_arena gm_track_arena __attribute__((visibility("hidden")));

/* Private memory: what a killed process had is in its file too. At the first event and at every so many. */
#define GM_COUNTED 64u
void gm_count_own_bytes(void);

void gm_windows_open(void); /* windows.c: the next is due */

/* blocks.c: brings up to date what is not while blocks_ready has bits; and clears them. */
void gm_blocks_settle(void);

static inline void gm_blocks_unready(void)
{
	if (__builtin_expect(gm_track.blocks_ready != 0, 0))
		gm_blocks_settle();
}

/* Takes the lock, reads the clock, makes the file's sequence odd. */
void gm_track_enter(void);
bool gm_track_try_enter(void);
void gm_track_leave(void);

/* The counters are settled for now, the lock stays held; and going on. */
void gm_track_pause(void);
void gm_track_unpause(void);

/* Of an allocation: before its site changes. */
static inline void gm_windows_advance(void)
{
	if (__builtin_expect(gm_file->freed >= gm_track.window_end, 0))
		gm_windows_open();
}

/* The parts of both, the lock apart: for the events that are the most (blocks.c). */
static inline void gm_track_entered(uint64_t now_ns)
{
	if (__builtin_expect(now_ns > gm_track.now_ns, 1))
		gm_track.now_ns = now_ns;
	__atomic_store_n(&gm_file->sequence, gm_file->sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void gm_track_leaving(void)
{
	if (__builtin_expect(gm_file->events % GM_COUNTED == 1, 0))
		gm_count_own_bytes();
	gm_file->last_event_ns = gm_track.now_ns;
	__atomic_store_n(&gm_file->sequence, gm_file->sequence + 1, __ATOMIC_RELEASE);
	gm_track_unlock();
}

/* levels.c: the record in use for a device and level, made at first use; NULL when the file is full. */
struct gm_level_record *gm_make_level(int device, unsigned level);
struct gm_usage_record *gm_make_usage(int device, unsigned kind);

static inline struct gm_level_record *gm_level(int device, unsigned level)
{
	struct gm_level_record *record = gm_totals.levels[gm_slot(device)][level];

	return __builtin_expect(record != NULL, 1) ? record : gm_make_level(device, level);
}

static inline struct gm_usage_record *gm_usage(int device, unsigned kind)
{
	struct gm_usage_record *record = gm_totals.usage[gm_slot(device)][kind];

	return __builtin_expect(record != NULL, 1) ? record : gm_make_usage(device, kind);
}

/* sites.c: the site of an event, made if new; GM_NONE when the file is full. */
uint32_t gm_site(const struct gm_event *event);
void gm_sites_reset(void);

/*
 * levels.c: counts an allocation that comes or goes in the records of its site (NULL: none), level
 * and usage, in its pool and in the timeline; and one that failed.
 */
void gm_account_alloc(const struct gm_alloc_record *alloc, struct gm_site_record *site);
void gm_account_free(const struct gm_alloc_record *alloc, struct gm_site_record *site);
void gm_account_resize(const struct gm_alloc_record *alloc, struct gm_site_record *site,
		       uint64_t more_bytes);
void gm_account_failure(int device, unsigned level, unsigned kind, struct gm_site_record *site);

/* windows.c: which window is open now. */
void gm_windows_start(void);
void gm_windows_mark(void);

/* Before a change of a site: its windows are brought up to the open one. */
static inline void gm_site_windows(struct gm_site_record *site)
{
	const uint8_t *window = (const uint8_t *)site + offsetof(struct gm_site_record, window_current);

	if (__builtin_expect(memcmp(window, gm_track.window, sizeof(gm_track.window)), 0))
		gm_site_follow_windows(site, gm_file->window_current, gm_file->window_merges,
				       gm_file->window_resets);
}

/* timeline.c: what is known of a series: the point that is open, so that most events touch little. */
struct gm_open_series {
	struct gm_timeline_record *record;
	uint64_t end_ns; /* of the open point */
	uint64_t min_bytes, max_bytes;
	uint32_t point;
};
extern struct gm_open_series gm_open_series[GM_SLOTS][GM_SERIES_COUNT]
	__attribute__((visibility("hidden")));

void gm_timeline_reset(void);
/* Opens the point that this moment belongs to, and the series if need be; false: the file is full. */
bool gm_timeline_open(struct gm_open_series *open, int device, enum gm_series series);

/* The value from now on of a series whose point is open. */
static inline void gm_series_value(struct gm_open_series *open, uint64_t bytes)
{
	open->record->last_bytes[open->point] = bytes;
	if (bytes < open->min_bytes)
		open->record->min_bytes[open->point] = open->min_bytes = bytes;
	if (bytes > open->max_bytes)
		open->record->max_bytes[open->point] = open->max_bytes = bytes;
}

static inline void gm_timeline(int device, enum gm_series series, uint64_t bytes)
{
	struct gm_open_series *open = &gm_open_series[gm_slot(device)][series];

	if (__builtin_expect(gm_track.now_ns >= open->end_ns, 0) &&
	    !gm_timeline_open(open, device, series))
		return;
	gm_series_value(open, bytes);
}

/* live.c: books an allocation that ended without a free call; the caller then ends it. */
void gm_implicitly_freed(const struct gm_alloc_record *record, enum gm_implicit_cause cause);

/* track.c: an allocation is entered, an older one of its key ended. NULL when the file is full. */
struct gm_alloc_record *gm_alloc(const struct gm_event *event);

/* live.c: the live table. Records are numbers in GM_TABLE_ALLOCS. */
struct gm_alloc_record *gm_live_find(unsigned space, uint64_t key, uint32_t *number);
struct gm_alloc_record *gm_live_add(const struct gm_event *event, uint32_t site);
void gm_live_drop(struct gm_alloc_record *record, uint32_t number);
/* Ends an allocation: site, levels, table. */
void gm_live_end(struct gm_alloc_record *record, uint32_t number);
/* The live record of a space of addresses that has this one inside, for diagnosis; slow. */
struct gm_alloc_record *gm_live_containing(unsigned space, uint64_t address);
/* Calls for each live record; stops when it returns false. */
void gm_live_each(bool (*visit)(struct gm_alloc_record *, uint32_t number, void *), void *data);
/* Into and out of the index alone; the record stays. */
bool gm_live_index(struct gm_alloc_record *record);
void gm_live_unindex(struct gm_alloc_record *record);
void gm_live_reset(void);

/* errors.c: a free that CUDA refused. `alloc` NULL: no live record of the key. */
void gm_error_of_free(const struct gm_event *event, struct gm_alloc_record *alloc);
void gm_error_note(enum gm_error_type type, const struct gm_event *event, uint64_t bytes,
		   uint32_t first_free_stack, uint32_t victim_site);

/* vmm.c: a handle, a reservation or a mapping came or went; whether anything is mapped in a range;
 * a released, mapped handle. */
void gm_vmm_came(const struct gm_alloc_record *alloc);
void gm_vmm_went(const struct gm_alloc_record *alloc);
bool gm_mapped_within(uint64_t address, uint64_t bytes);
struct gm_alloc_record *gm_vmm_pending(uint64_t handle, uint32_t *number);

/* vmm.c: a handle's mapping, tile or binding went. */
void gm_vmm_let_go(uint32_t owner);
/* A handle that the driver told no size of turns out to hold at least `bytes`. */
void gm_live_resize(struct gm_alloc_record *record, uint32_t number, uint64_t bytes);

/* holds.c: a multicast object or sparse array is gone, and with it what it held. */
void gm_holder_gone(unsigned space, uint64_t object);
void gm_holds_reset(void);

/* pools.c: an allocation of a pool came or went (`stream`: freed on one, pending). */
void gm_pool_add(const struct gm_alloc_record *alloc);
void gm_pool_remove(const struct gm_alloc_record *alloc);
void gm_pool_pending(const struct gm_alloc_record *alloc, uint64_t stream);
void gm_pools_reset(void);

void gm_graphs_reset(void);
void gm_contexts_reset(void);
void gm_costs_reset(void);

/* costs.c: the sum of one kind of cost on a device; and the end of all of them, with its contexts. */
int64_t gm_cost_bytes(int device, enum gm_cost cost);
void gm_costs_gone(int device);

/* levels.c: physical bytes that belong to no single allocation (a pool's reserve). */
void gm_levels_physical(int device, int64_t change);

/* in_use.c: after an allocation; what was in use may be a new peak. With how many bytes of PyTorch's
 * blocks, or in calls where there are no blocks, it would be that again, as long as the rest of the
 * device's books stays as it is. */
void gm_in_use_raise(int device);
uint64_t gm_in_use_room(int device);
uint64_t gm_in_use_room_of_calls(int device);
void gm_in_use_reset(void);

/* history.c: the ring of the last events, and the journal of them all where one is kept. A free is told
 * before its allocation ends. */
void gm_history(enum gm_event_op op, const struct gm_event *event, uint64_t serial, uint32_t site);
void gm_history_start(bool on);

#endif
