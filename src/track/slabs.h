/*
 * The steps that an allocation cut from a slab and its free are made of, inline (physical.h says what slabs
 * are, physical.c has the rest). Private to track/, under the lock.
 */
#ifndef GM_TRACK_SLABS_H
#define GM_TRACK_SLABS_H

#include "track/index.h"
#include "track/peaks.h"
#include "track/physical.h"

struct gm_slabs {
	struct gm_index index; /* by address / GM_SLAB_BYTES, with the number of its allocations */
	struct gm_index_slot *last; /* the one last found; NULL once slots may have moved */
	struct gm_slab_sums sums[GM_SLOTS];
};
extern struct gm_slabs gm_slabs __attribute__((visibility("hidden")));

/* A slab's first allocation; false without memory to remember it. */
bool gm_slab_begin(uint64_t number);

static inline struct gm_index_slot *gm_slab_find(uint64_t address)
{
	struct gm_index_slot *slab = gm_slabs.last;

	if (!slab || slab->key != address / GM_SLAB_BYTES)
		slab = gm_slabs.last = gm_index_find(&gm_slabs.index, 0, address / GM_SLAB_BYTES);
	return slab;
}

/* What the driver must hold more for one at `address` whose share is `bytes`. */
static inline uint64_t gm_slab_took(int device, uint64_t address, uint64_t bytes)
{
	struct gm_slab_sums *sums = &gm_slabs.sums[gm_slot(device)];
	struct gm_index_slot *slab = gm_slab_find(address);
	uint64_t added = 0;

	if (__builtin_expect(slab != NULL, 1))
		slab->count++;
	else if (gm_slab_begin(address / GM_SLAB_BYTES))
		added = GM_SLAB_BYTES;
	else
		return 0;
	sums->reserved_bytes += added;
	sums->used_bytes += bytes;
	gm_peak_raise(device, GM_HOLES_SLAB, sums->used_bytes, sums->reserved_bytes);
	return added;
}

/* What it holds less without this one. */
static inline uint64_t gm_slab_gave(int device, const struct gm_alloc_record *alloc)
{
	struct gm_slab_sums *sums = &gm_slabs.sums[gm_slot(device)];
	struct gm_index_slot *slab = gm_slab_find(alloc->key);

	if (__builtin_expect(!slab, 0))
		return 0;
	gm_peak_freed(device, GM_HOLES_SLAB, alloc);
	sums->used_bytes -= alloc->physical_bytes;
	if (__builtin_expect(--slab->count != 0, 1))
		return 0;
	sums->reserved_bytes -= GM_SLAB_BYTES;
	gm_index_take(&gm_slabs.index, slab);
	gm_slabs.last = NULL;
	return GM_SLAB_BYTES;
}

#endif
