/*
 * What the driver holds for the allocations of a device together (account/sizes.h has the size of one).
 */
#ifndef GM_TRACK_PHYSICAL_H
#define GM_TRACK_PHYSICAL_H

#include "account/sizes.h"

/*
 * Change of the driver's holding when the allocation comes or goes: the share, but for slab memory
 * 2 MiB with a slab's first allocation and -2 MiB with its last, and nothing for what lies in a pool,
 * whose reserve counts (pools.c). Under the tracker's lock.
 */
int64_t gm_physical_add(const struct gm_alloc_record *alloc);
int64_t gm_physical_remove(const struct gm_alloc_record *alloc);

/* What small requests of a device hold: their slabs, and their own shares. */
struct gm_slab_sums {
	uint64_t reserved_bytes, used_bytes;
};
struct gm_slab_sums gm_slab_sums(int device);

void gm_physical_reset(void);

#endif
