/*
 * Sites: one stack, kind, device and level each, with live, total and peak figures. Called under the
 * tracker's lock.
 */
#include "track/state.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(bytes) gm_arena_alloc(&gm_track.arena, bytes)
#define uthash_free(memory, bytes) gm_arena_free(&gm_track.arena, memory, bytes)
#include <uthash.h>

#define FIRST_ROOM 4096u
#define MOST_ROOM  (1u << 26)

struct site_key {
	uint32_t stack, function; /* the function tells sites apart where stacks are off */
	int16_t device;
	uint8_t kind, level;
};

struct site_entry {
	struct site_key key;
	uint32_t number;
	UT_hash_handle hh;
};

static struct site_entry *sites;

/* The site that a stack was last met at, plus 1: mostly the only one it has. */
static struct {
	uint32_t *site;
	uint32_t room;
	uint32_t stackless; /* the same, where stacks are off */
} latest;

void gm_sites_reset(void)
{
	sites = NULL; /* the arena went with everything in it */
	memset(&latest, 0, sizeof(latest));
}

static uint32_t make_site(const struct gm_event *event)
{
	uint32_t number;
	struct gm_site_record *site = gm_store_append(GM_TABLE_SITES, 1, &number);

	if (!site)
		return GM_NONE;
	site->stack = event->stack;
	site->kind = event->kind;
	site->level = event->level;
	site->device = event->device;
	site->function = event->function;
	site->caller_module = event->caller_module;
	site->window_current = gm_file->window_current;
	site->window_merges = gm_file->window_merges;
	site->window_resets = gm_file->window_resets;
	site->flags = event->flags & GM_ALLOC_TORCH ? GM_SITE_TORCH : 0;
	site->first_ns = gm_track.now_ns;
	site->min_alloc_bytes = UINT64_MAX;
	gm_store_publish(GM_TABLE_SITES);
	return number;
}

static uint32_t find_or_make(const struct gm_event *event)
{
	struct site_key key;
	struct site_entry *entry;
	uint32_t number;

	memset(&key, 0, sizeof(key));
	key.stack = event->stack;
	key.function = event->stack == GM_NONE ? event->function : GM_NONE;
	key.device = event->device;
	key.kind = event->kind;
	key.level = event->level;
	HASH_FIND(hh, sites, &key, sizeof(key), entry);
	if (entry)
		return entry->number;
	number = make_site(event);
	entry = number == GM_NONE ? NULL : gm_arena_alloc(&gm_track.arena, sizeof(*entry));
	if (!entry)
		return number;
	memset(entry, 0, sizeof(*entry));
	entry->key = key;
	entry->number = number;
	HASH_ADD(hh, sites, key, sizeof(key), entry);
	return number;
}

/* Room for a stack's number; without memory for it the hash table has to do. */
static bool make_room(uint32_t stack)
{
	uint32_t room = latest.room ? latest.room : FIRST_ROOM, *larger;

	while (room <= stack && room < MOST_ROOM)
		room *= 2;
	if (room <= stack)
		return false;
	larger = gm_arena_alloc(&gm_track.arena, room * sizeof(*larger));
	if (!larger)
		return false;
	memset(larger, 0, room * sizeof(*larger));
	if (latest.room)
		memcpy(larger, latest.site, latest.room * sizeof(*larger));
	gm_arena_free(&gm_track.arena, latest.site, latest.room * sizeof(*larger));
	latest.site = larger;
	latest.room = room;
	return true;
}

static __attribute__((noinline)) uint32_t look_up(const struct gm_event *event)
{
	uint32_t number = find_or_make(event);

	if (number == GM_NONE)
		return number;
	if (event->stack == GM_NONE)
		latest.stackless = number + 1;
	else if (event->stack < latest.room || make_room(event->stack))
		latest.site[event->stack] = number + 1;
	return number;
}

uint32_t gm_site(const struct gm_event *event)
{
	const struct gm_site_record *site;
	uint32_t number;

	number = event->stack < latest.room ? latest.site[event->stack] : latest.stackless;
	if (!number)
		return look_up(event);
	site = gm_store_record(GM_TABLE_SITES, number - 1);
	if (site->stack == event->stack && site->kind == event->kind && site->level == event->level &&
	    site->device == event->device &&
	    (event->stack != GM_NONE || site->function == event->function))
		return number - 1;
	return look_up(event);
}

void gm_site_prefetch(uint32_t stack)
{
	const struct gm_site_record *site;

	if (stack >= latest.room || !latest.site[stack])
		return;
	site = gm_store_record(GM_TABLE_SITES, latest.site[stack] - 1);
	__builtin_prefetch(site, 1);
	__builtin_prefetch(&site->peak_bytes, 1);
	__builtin_prefetch(&site->windows[gm_file->window_current], 1);
}

/* Before a change: if the level stood at its peak since this site last changed, its bytes of then are
 * still its bytes of now. See layout.h. */
static inline void settle_peak(struct gm_site_record *site, const struct gm_level_record *level)
{
	if (level && site->epoch < level->epoch) {
		site->bytes_at_peak = site->live_bytes;
		site->epoch = level->epoch;
	}
}

static inline void note_window(struct gm_site_record *site)
{
	struct gm_window *window = &site->windows[site->window_current];

	window->last_bytes = site->live_bytes;
	if (site->live_bytes < window->min_bytes)
		window->min_bytes = site->live_bytes;
	if (site->live_bytes > window->max_bytes)
		window->max_bytes = site->live_bytes;
}

void gm_site_add(struct gm_site_record *site, const struct gm_alloc_record *alloc,
		 const struct gm_level_record *level)
{
	settle_peak(site, level);
	gm_site_windows(site);
	site->live_bytes += alloc->bytes;
	site->live_count++;
	site->allocated_bytes += alloc->bytes;
	if (!site->allocations++)
		site->first_serial = alloc->serial;
	site->last_ns = gm_track.now_ns;
	if (site->live_bytes > site->peak_bytes)
		site->peak_bytes = site->live_bytes;
	if (alloc->bytes < site->min_alloc_bytes)
		site->min_alloc_bytes = alloc->bytes;
	if (alloc->bytes > site->max_alloc_bytes)
		site->max_alloc_bytes = alloc->bytes;
	note_window(site);
}

void gm_site_remove(struct gm_site_record *site, const struct gm_alloc_record *alloc,
		    const struct gm_level_record *level)
{
	settle_peak(site, level);
	gm_site_windows(site);
	site->live_bytes -= alloc->bytes;
	site->live_count--;
	site->freed_bytes += alloc->bytes;
	site->frees++;
	if (alloc->flags & GM_ALLOC_BEFORE_MARK) {
		site->stray_bytes -= alloc->bytes;
		site->stray_count--;
	}
	note_window(site);
}
