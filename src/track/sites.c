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

void gm_sites_reset(void)
{
	sites = NULL; /* the arena went with everything in it */
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

uint32_t gm_site(const struct gm_event *event)
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

/* Before a change: if the level stood at its peak since this site last changed, its bytes of then are
 * still its bytes of now. See layout.h. */
static void settle_peak(struct gm_site_record *site)
{
	struct gm_level_record *level = gm_level(site->device, site->level);

	if (level && site->epoch < level->epoch) {
		site->bytes_at_peak = site->live_bytes;
		site->epoch = level->epoch;
	}
}

static void note_window(struct gm_site_record *site)
{
	struct gm_window *window = &site->windows[site->window_current];

	window->last_bytes = site->live_bytes;
	if (site->live_bytes < window->min_bytes)
		window->min_bytes = site->live_bytes;
	if (site->live_bytes > window->max_bytes)
		window->max_bytes = site->live_bytes;
}

void gm_site_add(struct gm_site_record *site, const struct gm_alloc_record *alloc)
{
	settle_peak(site);
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

void gm_site_remove(struct gm_site_record *site, const struct gm_alloc_record *alloc)
{
	settle_peak(site);
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
