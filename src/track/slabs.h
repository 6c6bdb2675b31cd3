/*
 * Slabs: the driver cuts small requests from pieces of 2 MiB, which are aligned to 2 MiB, so that
 * an allocation's address tells its slab. What the driver holds for small allocations are their
 * slabs (account/sizes.h has what it holds for one allocation). For track/, under the lock.
 */
#ifndef GM_TRACK_SLABS_H
#define GM_TRACK_SLABS_H

#include "account/sizes.h"
#include "track/index.h"
#include "track/peaks.h"

/*
 * Return the change of what the driver holds when an allocation of the driver's level comes or
 * goes: its physical bytes; for slab memory a slab with the slab's first allocation and minus a
 * slab with its last; and nothing for what lies in a pool, whose reserve counts as a whole
 * (pools.h).
 */
int64_t gm_physical_add(const struct gm_alloc_record *alloc);
int64_t gm_physical_remove(const struct gm_alloc_record *alloc);

/* The sums over the small allocations of a device: their slabs, and their own shares. */
struct gm_slab_sums {
	uint64_t reserved_bytes, used_bytes;
};
struct gm_slab_sums gm_slab_sums(int device);

void gm_slabs_reset(void);

/* ---- the steps of the above, for the fast path ---- */

struct gm_slabs {
	struct gm_index index; /* by address / GM_SLAB_BYTES; counts the allocations in each slab */
	struct gm_index_slot *last; /* the slot found last; NULL once slots may have moved */
	struct gm_slab_sums sums[GM_SLOTS];
};
extern struct gm_slabs gm_slabs __attribute__((visibility("hidden")));

/* Adds the slab with this number, which has one allocation. Returns false without memory for it. */
bool gm_slab_begin(uint64_t number);

static inline struct gm_index_slot *gm_slab_find(uint64_t address)
{
	struct gm_index_slot *slab = gm_slabs.last;

	if (!slab || slab->key != address / GM_SLAB_BYTES)
		slab = gm_slabs.last = gm_index_find(&gm_slabs.index, 0, address / GM_SLAB_BYTES);
	return slab;
}

/* An allocation whose share is `bytes` came. Returns what the driver holds more. */
static inline uint64_t gm_slab_add(int device, uint64_t address, uint64_t bytes)
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

/* An allocation is about to go. Returns what the driver holds less. */
static inline uint64_t gm_slab_remove(int device, const struct gm_alloc_record *alloc)
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
	gm_index_clear(&gm_slabs.index, slab);
	gm_slabs.last = NULL;
	return GM_SLAB_BYTES;
}

#endif
