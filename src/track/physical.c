/*
 * What the driver must hold for an allocation (physical.h). Slabs are told by address: the driver cuts
 * small requests from 2 MiB that are aligned to 2 MiB.
 */
#include "track/physical.h"
#include "track/peaks.h"
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
static struct gm_slab_sums sums[GM_SLOTS];

void gm_physical_reset(void)
{
	slabs = NULL;
	memset(sums, 0, sizeof(sums));
}

struct gm_slab_sums gm_slab_sums(int device)
{
	return sums[gm_slot(device)];
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
	struct gm_slab_sums *sum = &sums[gm_slot(alloc->device)];
	struct slab *slab;
	uint64_t added;

	if (in_pool(alloc))
		return 0;
	if (!in_slab(alloc))
		return (int64_t)alloc->physical_bytes;
	slab = slab_of(alloc, true);
	if (!slab)
		return 0;
	added = slab->live++ == 0 ? GM_PAGE_BYTES : 0;
	sum->reserved_bytes += added;
	sum->used_bytes += alloc->physical_bytes;
	gm_peak_raise(alloc->device, GM_HOLES_SLAB, sum->used_bytes, sum->reserved_bytes);
	return (int64_t)added;
}

int64_t gm_physical_remove(const struct gm_alloc_record *alloc)
{
	struct gm_slab_sums *sum = &sums[gm_slot(alloc->device)];
	struct slab *slab;

	if (in_pool(alloc))
		return 0;
	if (!in_slab(alloc))
		return -(int64_t)alloc->physical_bytes;
	slab = slab_of(alloc, false);
	if (!slab)
		return 0;
	gm_peak_freed(GM_HOLES_SLAB, alloc);
	sum->used_bytes -= alloc->physical_bytes;
	if (--slab->live)
		return 0;
	sum->reserved_bytes -= GM_PAGE_BYTES;
	HASH_DEL(slabs, slab);
	gm_arena_free(&gm_track.arena, slab, sizeof(*slab));
	return -(int64_t)GM_PAGE_BYTES;
}
