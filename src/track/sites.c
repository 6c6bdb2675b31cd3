/*
 * Sites.
 */
#include "track/sites.h"
#include "account/counters.h"
#include "track/state.h"

#include <string.h>

#define HASH_NONFATAL_OOM	   1
#define uthash_malloc(bytes)	   gm_arena_alloc(&gm_track_arena, bytes)
#define uthash_free(memory, bytes) gm_arena_free(&gm_track_arena, memory, bytes)
#include <uthash.h>

#define FIRST_CAPACITY 4096u
#define RESERVED	48u /* sites, for overflow */
#define MOST_CAPACITY  (1u << 26)

struct site_key {
	uint32_t stack, function; /* the function tells sites without a stack apart */
	int16_t device;
	uint8_t kind, level;
};

struct site_entry {
	struct site_key key;
	uint32_t index;
	UT_hash_handle hh;
};

static struct site_entry *sites;
static uint32_t overflow[GM_SLOTS][GM_KINDS][GM_LEVELS]; /* indices plus 1 */

GM_HOT_EVENT struct gm_latest_sites gm_latest_sites;

void gm_sites_reset(void)
{
	sites = NULL; /* the arena was freed as a whole */
	memset(overflow, 0, sizeof(overflow));
	memset(&gm_latest_sites, 0, sizeof(gm_latest_sites));
}

static uint32_t append_site(const struct gm_event *event)
{
	uint32_t index;
	struct gm_site_record *site = gm_store_append(GM_TABLE_SITES, 1, &index);

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
	gm_site_begin(site, gm_track.now_ns);
	gm_store_publish(GM_TABLE_SITES);
	return index;
}

/*
 * The site of all places of a device, kind and level for which the file has no room, so that
 * totals, peaks and counts stay what they are. RESERVED records of the table are kept for these
 * sites.
 */
static uint32_t overflow_site(const struct gm_event *event)
{
	uint32_t *known = &overflow[gm_slot(event->device)][event->kind][event->level];
	struct gm_event nowhere = *event;
	struct gm_site_record *site;

	if (gm_file->end == GM_END_NONE)
		gm_store_dropped(GM_TABLE_SITES);
	if (*known)
		return *known - 1;
	nowhere.stack = GM_NONE;
	nowhere.function = GM_NONE;
	nowhere.caller_module = GM_NONE;
	*known = append_site(&nowhere) + 1;
	site = gm_store_record(GM_TABLE_SITES, *known - 1);
	if (site)
		site->flags |= GM_SITE_OVERFLOW;
	return *known - 1;
}

static uint32_t make_site(const struct gm_event *event)
{
	return gm_store_ensure(GM_TABLE_SITES, 1 + RESERVED) ? append_site(event) : GM_NONE;
}

static uint32_t find_or_make(const struct gm_event *event)
{
	struct site_key key;
	struct site_entry *entry;
	uint32_t index;

	memset(&key, 0, sizeof(key));
	key.stack = event->stack;
	key.function = event->stack == GM_NONE ? event->function : GM_NONE;
	key.device = event->device;
	key.kind = event->kind;
	key.level = event->level;
	HASH_FIND(hh, sites, &key, sizeof(key), entry);
	if (entry)
		return entry->index;
	index = make_site(event);
	if (index == GM_NONE)
		return overflow_site(event);
	entry = gm_arena_alloc(&gm_track_arena, sizeof(*entry));
	if (!entry)
		return index;
	memset(entry, 0, sizeof(*entry));
	entry->key = key;
	entry->index = index;
	HASH_ADD(hh, sites, key, sizeof(key), entry);
	return index;
}

/*
 * Extends the array of latest sites to the index of a stack. Returns false without memory for that;
 * then the hash table alone finds the site.
 */
static bool grow_to(uint32_t stack)
{
	uint32_t capacity = gm_latest_sites.capacity ? gm_latest_sites.capacity : FIRST_CAPACITY;
	struct gm_latest_site *larger;

	while (capacity <= stack && capacity < MOST_CAPACITY)
		capacity *= 2;
	if (capacity <= stack)
		return false;
	larger = gm_arena_alloc(&gm_track_arena, capacity * sizeof(*larger));
	if (!larger)
		return false;
	memset(larger, 0, capacity * sizeof(*larger));
	if (gm_latest_sites.capacity)
		memcpy(larger, gm_latest_sites.site, gm_latest_sites.capacity * sizeof(*larger));
	/*
	 * gm_site_prefetch takes no lock. So the array is stored before its capacity, and the
	 * smaller arrays are not freed; all of them together are no larger than this one.
	 */
	__atomic_store_n(&gm_latest_sites.site, larger, __ATOMIC_RELEASE);
	__atomic_store_n(&gm_latest_sites.capacity, capacity, __ATOMIC_RELEASE);
	return true;
}

/* Finds the site in the hash table, and remembers it as the latest of its stack. */
static __attribute__((noinline)) uint32_t find_slow(const struct gm_event *event)
{
	uint32_t index = find_or_make(event);
	struct gm_latest_site *latest = NULL;

	if (index == GM_NONE)
		return index;
	if (event->stack == GM_NONE)
		latest = &gm_latest_sites.stackless;
	else if (event->stack < gm_latest_sites.capacity || grow_to(event->stack))
		latest = &gm_latest_sites.site[event->stack];
	if (latest) {
		latest->index = index + 1;
		__atomic_store_n(&latest->offset,
				 gm_store_offset(gm_store_record(GM_TABLE_SITES, index)),
				 __ATOMIC_RELAXED);
	}
	return index;
}

uint32_t gm_find_or_make_site(const struct gm_event *event)
{
	struct gm_latest_site known = gm_known_site(event);

	return known.index ? known.index - 1 : find_slow(event);
}

uint64_t gm_sites_most_live_bytes(void)
{
	uint32_t count = __atomic_load_n(&gm_file->tables[GM_TABLE_SITES].count, __ATOMIC_ACQUIRE);
	uint64_t most = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct gm_site_record *site = gm_store_record(GM_TABLE_SITES, i);
		uint64_t bytes = __atomic_load_n(&site->live_bytes, __ATOMIC_RELAXED);

		most = bytes > most ? bytes : most;
	}
	return most;
}
