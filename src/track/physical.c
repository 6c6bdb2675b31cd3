/*
 * What the driver must hold for an allocation (physical.h). Slabs are told by address: the driver cuts
 * small requests from 2 MiB that are aligned to 2 MiB.
 */
#include "track/physical.h"
#include "track/state.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(bytes) gm_arena_alloc(&gm_track.arena, bytes)
#define uthash_free(memory, bytes) gm_arena_free(&gm_track.arena, memory, bytes)
#include <uthash.h>

#define PAGE_BYTES (2ull << 20)
#define SLAB_LIMIT_BYTES (1ull << 20)
#define SLAB_UNIT_BYTES 512ull
#define HOST_PAGE_BYTES 4096ull

struct slab {
	uint64_t number; /* address / PAGE_BYTES */
	int16_t device;
	uint64_t live;	 /* allocations in it */
	UT_hash_handle hh;
};

static struct slab *slabs;

void gm_physical_reset(void)
{
	slabs = NULL;
}

/* `unit` is a power of two. */
static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) & ~(unit - 1);
}

uint64_t gm_physical_share(unsigned kind, uint64_t bytes)
{
	switch (kind) {
	case GM_KIND_DEVICE:
	case GM_KIND_ARRAY:
		return round_up(bytes, bytes <= SLAB_LIMIT_BYTES ? SLAB_UNIT_BYTES : PAGE_BYTES);
	case GM_KIND_ASYNC:
	case GM_KIND_GRAPH:
		return round_up(bytes, SLAB_UNIT_BYTES);
	case GM_KIND_VMM:
		return round_up(bytes, PAGE_BYTES);
	case GM_KIND_PINNED:
		return round_up(bytes, HOST_PAGE_BYTES);
	default:
		return 0;
	}
}

static bool in_slab(const struct gm_alloc_record *alloc)
{
	return alloc->level == GM_LEVEL_DRIVER && alloc->kind == GM_KIND_DEVICE &&
	       alloc->bytes <= SLAB_LIMIT_BYTES;
}

/* A pool's reserve counts as a whole (pools.c). */
static bool in_pool(const struct gm_alloc_record *alloc)
{
	return (alloc->kind == GM_KIND_ASYNC || alloc->kind == GM_KIND_GRAPH) &&
	       alloc->owner != GM_NONE;
}

static struct slab *slab_of(const struct gm_alloc_record *alloc, bool make)
{
	uint64_t number = alloc->key / PAGE_BYTES;
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
	return slab && slab->live++ == 0 ? (int64_t)PAGE_BYTES : 0;
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
	return -(int64_t)PAGE_BYTES;
}
