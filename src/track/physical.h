/*
 * What the driver must hold for an allocation (facts of an H100 and H200, CUDA 13): requests of at
 * most 1 MiB are rounded to 512 B and cut from 2 MiB slabs, larger ones take whole 2 MiB pages.
 */
#ifndef GM_TRACK_PHYSICAL_H
#define GM_TRACK_PHYSICAL_H

#include "store/layout.h"

#define GM_PAGE_BYTES	    (2ull << 20)
#define GM_SLAB_LIMIT_BYTES (1ull << 20)
#define GM_SLAB_UNIT_BYTES  512ull
#define GM_HOST_PAGE_BYTES  4096ull

/* `unit` is a power of two. */
static inline uint64_t gm_round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) & ~(unit - 1);
}

/* An allocation's own share: rounded to 512 B, or to pages. Managed memory holds nothing yet. */
static inline uint64_t gm_physical_share(unsigned kind, uint64_t bytes)
{
	switch (kind) {
	case GM_KIND_DEVICE:
	case GM_KIND_ARRAY:
		return gm_round_up(bytes, bytes <= GM_SLAB_LIMIT_BYTES ? GM_SLAB_UNIT_BYTES : GM_PAGE_BYTES);
	case GM_KIND_ASYNC:
	case GM_KIND_GRAPH:
		return gm_round_up(bytes, GM_SLAB_UNIT_BYTES);
	case GM_KIND_VMM:
		return gm_round_up(bytes, GM_PAGE_BYTES);
	case GM_KIND_PINNED:
		return gm_round_up(bytes, GM_HOST_PAGE_BYTES);
	default:
		return 0;
	}
}

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
