/*
 * Sites: one stack, kind, device and level each, with live, total and peak figures. Called under the
 * tracker's lock.
 */
#include "track/book.h"
#include "track/torch.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(bytes) gm_arena_alloc(&gm_track_arena, bytes)
#define uthash_free(memory, bytes) gm_arena_free(&gm_track_arena, memory, bytes)
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

GM_HOT struct gm_latest_sites gm_latest_sites;

void gm_sites_reset(void)
{
	sites = NULL; /* the arena went with everything in it */
	memset(&gm_latest_sites, 0, sizeof(gm_latest_sites));
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
	gm_site_begin(site, gm_track.now_ns);
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
	entry = number == GM_NONE ? NULL : gm_arena_alloc(&gm_track_arena, sizeof(*entry));
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
	uint32_t room = gm_latest_sites.room ? gm_latest_sites.room : FIRST_ROOM;
	struct gm_latest_site *larger;

	while (room <= stack && room < MOST_ROOM)
		room *= 2;
	if (room <= stack)
		return false;
	larger = gm_arena_alloc(&gm_track_arena, room * sizeof(*larger));
	if (!larger)
		return false;
	memset(larger, 0, room * sizeof(*larger));
	if (gm_latest_sites.room)
		memcpy(larger, gm_latest_sites.site, gm_latest_sites.room * sizeof(*larger));
	/*
	 * In this order: gm_track_site_prefetch takes no lock. For its sake the smaller one stays where it
	 * is; all that were outgrown are together no larger than this one.
	 */
	__atomic_store_n(&gm_latest_sites.site, larger, __ATOMIC_RELEASE);
	__atomic_store_n(&gm_latest_sites.room, room, __ATOMIC_RELEASE);
	return true;
}

/* Without the lock: what is read may be old, and is only a hint. */
GM_HOT_CODE void gm_track_site_prefetch(uint32_t stack)
{
	uint32_t room = __atomic_load_n(&gm_latest_sites.room, __ATOMIC_ACQUIRE);
	const struct gm_latest_site *latest = __atomic_load_n(&gm_latest_sites.site, __ATOMIC_RELAXED);
	const struct gm_site_record *site;

	if (stack >= room || !gm_file)
		return;
	site = gm_store_at(__atomic_load_n(&latest[stack].spot, __ATOMIC_RELAXED));
	__builtin_prefetch(site, 1);
	__builtin_prefetch(&site->peak_bytes, 1);
	__builtin_prefetch(&site->windows[gm_file->window_current], 1);
}

static __attribute__((noinline)) uint32_t look_up(const struct gm_event *event)
{
	uint32_t number = find_or_make(event);
	struct gm_latest_site found = {.number = number + 1};

	if (number == GM_NONE)
		return number;
	found.spot = gm_store_offset(gm_store_record(GM_TABLE_SITES, number));
	if (event->stack == GM_NONE)
		gm_latest_sites.stackless = found;
	else if (event->stack < gm_latest_sites.room || make_room(event->stack))
		gm_latest_sites.site[event->stack] = found;
	return number;
}

uint32_t gm_site(const struct gm_event *event)
{
	struct gm_latest_site known = gm_site_known(event);

	return known.number ? known.number - 1 : look_up(event);
}
