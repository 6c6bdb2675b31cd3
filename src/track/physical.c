/*
 * What the driver must hold for an allocation (physical.h). Slabs are told by address: the driver cuts
 * small requests from 2 MiB that are aligned to 2 MiB.
 */
#include "track/physical.h"
#include "track/state.h"

#include <string.h>

/* One number is hashed by one multiplication, much faster than by Jenkins's function. */
#define HASH_FUNCTION(pointer_, bytes_, hash_)                                                    \
	((hash_) = (unsigned)(*(const uint64_t *)(const void *)(pointer_) * 0x9e3779b97f4a7c15ull >> 32))
#define HASH_NONFATAL_OOM 1
#define uthash_malloc(bytes) gm_arena_alloc(&gm_track.arena, bytes)
#define uthash_free(memory, bytes) gm_arena_free(&gm_track.arena, memory, bytes)
#include <uthash.h>

struct slab {
	uint64_t number; /* address / GM_PAGE_BYTES */
	int16_t device;
	uint64_t live;	 /* allocations in it */
	UT_hash_handle hh;
};

static struct slab *slabs;

void gm_physical_reset(void)
{
	slabs = NULL;
}

static bool in_slab(const struct gm_alloc_record *alloc)
{
	return alloc->level == GM_LEVEL_DRIVER && alloc->kind == GM_KIND_DEVICE &&
	       alloc->bytes <= GM_SLAB_LIMIT_BYTES;
}

/* A pool's reserve counts as a whole (pools.c). */
static bool in_pool(const struct gm_alloc_record *alloc)
{
	return (alloc->kind == GM_KIND_ASYNC || alloc->kind == GM_KIND_GRAPH) &&
	       alloc->owner != GM_NONE;
}

static struct slab *slab_of(const struct gm_alloc_record *alloc, bool make)
{
	uint64_t number = alloc->key / GM_PAGE_BYTES;
	struct slab *slab;

	HASH_FIND(hh, slabs, &number, sizeof(number), slab);
	if (slab || !make)
		return slab;
	slab = gm_arena_alloc(&gm_track.arena, sizeof(*slab));
	if (!slab)
		return NULL;
	memset(slab, 0, sizeof(*slab));
	slab->number = number;
	slab->device = alloc->device;
	HASH_ADD(hh, slabs, number, sizeof(slab->number), slab);
	return slab;
}

int64_t gm_physical_add(const struct gm_alloc_record *alloc)
{
	struct slab *slab;

	if (in_pool(alloc))
		return 0;
	if (!in_slab(alloc))
		return (int64_t)alloc->physical_bytes;
	slab = slab_of(alloc, true);
	return slab && slab->live++ == 0 ? (int64_t)GM_PAGE_BYTES : 0;
}

int64_t gm_physical_remove(const struct gm_alloc_record *alloc)
{
	struct slab *slab;

	if (in_pool(alloc))
		return 0;
	if (!in_slab(alloc))
		return -(int64_t)alloc->physical_bytes;
	slab = slab_of(alloc, false);
	if (!slab || --slab->live)
		return 0;
	HASH_DEL(slabs, slab);
	gm_arena_free(&gm_track.arena, slab, sizeof(*slab));
	return -(int64_t)GM_PAGE_BYTES;
}
