/*
 * Live allocations for which the file has no room.
 */
#include "track/surplus.h"
#include "track/state.h"

#include <string.h>

#define HASH_NONFATAL_OOM	   1
#define uthash_malloc(bytes)	   gm_arena_alloc(&gm_track_arena, bytes)
#define uthash_free(memory, bytes) gm_arena_free(&gm_track_arena, memory, bytes)
#include <uthash.h>

struct surplus {
	uint64_t key[2]; /* key and space */
	struct gm_alloc_record record;
	UT_hash_handle hh;
};

static struct surplus *surplus;

void gm_surplus_reset(void)
{
	surplus = NULL; /* the arena was freed as a whole */
}

static struct surplus *find(unsigned space, uint64_t key)
{
	uint64_t wanted[2] = {key, space};
	struct surplus *found;

	HASH_FIND(hh, surplus, wanted, sizeof(wanted), found);
	return found;
}

struct gm_alloc_record *gm_surplus_find(unsigned space, uint64_t key)
{
	struct surplus *found = surplus ? find(space, key) : NULL;

	return found ? &found->record : NULL;
}

struct gm_alloc_record *gm_surplus_add(unsigned space, uint64_t key)
{
	struct surplus *added = gm_arena_alloc(&gm_track_arena, sizeof(*added));

	if (!added)
		return NULL;
	memset(added, 0, sizeof(*added));
	added->key[0] = key;
	added->key[1] = space;
	HASH_ADD(hh, surplus, key, sizeof(added->key), added);
	if (!added->hh.tbl) { /* there was no memory for the table */
		gm_arena_free(&gm_track_arena, added, sizeof(*added));
		return NULL;
	}
	return &added->record;
}

void gm_surplus_remove(const struct gm_alloc_record *record)
{
	struct surplus *removed = find(record->space, record->key);

	HASH_DEL(surplus, removed);
	gm_arena_free(&gm_track_arena, removed, sizeof(*removed));
}

void gm_surplus_each(bool (*visit)(struct gm_alloc_record *, uint32_t, void *), void *data)
{
	struct surplus *each, *next;

	HASH_ITER(hh, surplus, each, next)
	{
		if (!visit(&each->record, GM_NONE, data))
			return;
	}
}
