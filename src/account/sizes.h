/*
 * The bytes that the driver must hold for a request of a given size (facts of an H100 and H200,
 * CUDA 13; docs/evidence/facts.md, granularity): requests of at most 1 MiB are rounded up to 512 B
 * and cut from slabs of 2 MiB that are aligned to 2 MiB, larger ones take whole pages of 2 MiB;
 * pinned memory takes whole pages of the host.
 *
 * All functions are pure: they need no lock and are safe in signal handlers. Sizes are bytes.
 */
#ifndef GM_ACCOUNT_SIZES_H
#define GM_ACCOUNT_SIZES_H

#include "account/kinds.h"

#define GM_PAGE_BYTES	    (2ull << 20) /* of mappings, too, on all cards measured */
#define GM_SLAB_BYTES	    GM_PAGE_BYTES
#define GM_SLAB_LIMIT_BYTES (1ull << 20)
#define GM_SLAB_UNIT_BYTES  512ull
#define GM_HOST_PAGE_BYTES  4096ull

/* `unit` is a power of two. */
static inline uint64_t gm_round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) & ~(unit - 1);
}

static inline uint64_t gm_round_nothing(uint64_t bytes)
{
	(void)bytes;
	return 0; /* managed memory holds nothing until it is touched; the rest is not the process's
		   */
}

static inline uint64_t gm_round_units(uint64_t bytes)
{
	return gm_round_up(bytes, GM_SLAB_UNIT_BYTES);
}

static inline uint64_t gm_round_pages(uint64_t bytes)
{
	return gm_round_up(bytes, GM_PAGE_BYTES);
}

static inline uint64_t gm_round_units_or_pages(uint64_t bytes)
{
	return bytes <= GM_SLAB_LIMIT_BYTES ? gm_round_units(bytes) : gm_round_pages(bytes);
}

static inline uint64_t gm_round_host_pages(uint64_t bytes)
{
	return gm_round_up(bytes, GM_HOST_PAGE_BYTES);
}

/*
 * The share of an allocation in what the driver holds (`physical_bytes` of struct gm_alloc_record):
 * the request rounded as the driver rounds that kind. 0 for blocks, which lie in memory that the
 * driver level counts.
 */
static inline uint64_t gm_driver_bytes(unsigned level, unsigned kind, uint64_t bytes)
{
	if (level != GM_LEVEL_DRIVER)
		return 0;
	switch (kind) {
#define GM_KIND_ROW(kind, name, owned, usage, host, pool, divided, torch, slab, size)              \
	case GM_KIND_##kind:                                                                       \
		return gm_round_##size(bytes);
		GM_KIND_TABLE(GM_KIND_ROW)
#undef GM_KIND_ROW
	default:
		return 0;
	}
}

/* The driver cuts the allocation from a slab, which it holds as a whole as long as one allocation
 * is in it. */
static inline bool gm_in_slab(const struct gm_alloc_record *alloc)
{
	return alloc->level == GM_LEVEL_DRIVER && gm_kind_in(GM_KINDS_IN_SLAB, alloc->kind) &&
	       alloc->bytes <= GM_SLAB_LIMIT_BYTES;
}

/* Returns the address at which the slab that holds `address` begins. */
static inline uint64_t gm_slab_of(uint64_t address)
{
	return address & ~(GM_SLAB_BYTES - 1);
}

#endif
