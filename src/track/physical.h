/*
 * What the driver must hold for an allocation (facts of an H100 and H200, CUDA 13): requests of at
 * most 1 MiB are rounded to 512 B and cut from 2 MiB slabs, larger ones take whole 2 MiB pages.
 */
#ifndef GM_TRACK_PHYSICAL_H
#define GM_TRACK_PHYSICAL_H

#include "store/layout.h"

/* An allocation's own share: rounded to 512 B, or to pages. Managed memory holds nothing yet. */
uint64_t gm_physical_share(unsigned kind, uint64_t bytes);

/*
 * Change of the driver's holding when the allocation comes or goes: the share, but for slab memory
 * 2 MiB with a slab's first allocation and -2 MiB with its last, and nothing for what lies in a pool,
 * whose reserve counts (pools.c). Under the tracker's lock.
 */
int64_t gm_physical_add(const struct gm_alloc_record *alloc);
int64_t gm_physical_remove(const struct gm_alloc_record *alloc);

void gm_physical_reset(void);

#endif
