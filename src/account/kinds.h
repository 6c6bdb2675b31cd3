/*
 * The kinds of memory (enum gm_kind): one table holds everything that the accounting knows about a
 * kind. The predicates below are derived from it, so a kind without a row, or a row without one of
 * its attributes, does not compile. Includes the file format only; calls nothing.
 */
#ifndef GM_ACCOUNT_KINDS_H
#define GM_ACCOUNT_KINDS_H

#include "store/layout.h"

#include <stdbool.h>

/* clang-format off */
/*
 * The columns, yes or no unless said otherwise:
 *
 *   kind     the enumerator's name without GM_KIND_
 *   name     what the kind is called in documents and options (contract.md, section 4)
 *   owned    The memory belongs to the process: it counts in its level, in totals and in leaks.
 *   usage    Allocations of the kind are counted in struct gm_usage_record.
 *   host     The memory always lies in the host's memory. That of GM_KIND_VMM may: there the
 *            record's `device` tells.
 *   pool     The driver takes the memory from a pool, if the record names one (`owner`).
 *   divided  A caching allocator can take it as a segment and divide it into blocks.
 *   torch    PyTorch's own caching allocator does.
 *   slab     The driver cuts small requests from slabs (sizes.h).
 *   size     how the driver rounds a request: one of the gm_round_... functions of sizes.h,
 *            without the prefix
 */
#define GM_KIND_TABLE(ROW) \
	/*  kind        name        owned usage host pool divided torch slab size */ \
	ROW(NONE,       "none",       0,    0,    0,   0,   0,      0,    0,   nothing) \
	ROW(DEVICE,     "device",     1,    1,    0,   0,   1,      1,    1,   units_or_pages) \
	ROW(MANAGED,    "managed",    1,    1,    0,   0,   0,      0,    0,   nothing) \
	ROW(ARRAY,      "array",      1,    1,    0,   0,   0,      0,    0,   units_or_pages) \
	ROW(ASYNC,      "async",      1,    1,    0,   1,   1,      0,    0,   units) \
	ROW(VMM,        "vmm",        1,    1,    0,   0,   0,      0,    0,   pages) \
	ROW(GRAPH,      "graph",      1,    1,    0,   1,   0,      0,    0,   units) \
	ROW(PINNED,     "pinned",     1,    1,    1,   0,   0,      0,    0,   host_pages) \
	ROW(REGISTERED, "registered", 0,    1,    1,   0,   0,      0,    0,   nothing) \
	ROW(IMPORTED,   "imported",   0,    1,    0,   0,   0,      0,    0,   nothing)
/* clang-format on */

/* The rows are in the order of the enumeration, and none is missing. */
enum {
#define GM_KIND_ROW(kind, ...) GM_KIND_ROW_##kind,
	GM_KIND_TABLE(GM_KIND_ROW)
#undef GM_KIND_ROW
		GM_KIND_ROWS
};
#define GM_KIND_ROW(kind, ...)                                                                     \
	_Static_assert((int)GM_KIND_ROW_##kind == (int)GM_KIND_##kind, "rows are in order");
GM_KIND_TABLE(GM_KIND_ROW)
#undef GM_KIND_ROW
_Static_assert((int)GM_KIND_ROWS == (int)GM_KINDS && GM_KINDS <= 32,
	       "every kind has a row and a bit");

/* Each attribute has a set of kinds: bit i stands for kind i. */
#define GM_IN_OWNED(kind, name, owned, usage, host, pool, divided, torch, slab, size)              \
	| (owned) << GM_KIND_##kind
#define GM_IN_USAGE(kind, name, owned, usage, host, pool, divided, torch, slab, size)              \
	| (usage) << GM_KIND_##kind
#define GM_IN_HOST(kind, name, owned, usage, host, pool, divided, torch, slab, size)               \
	| (host) << GM_KIND_##kind
#define GM_IN_POOL(kind, name, owned, usage, host, pool, divided, torch, slab, size)               \
	| (pool) << GM_KIND_##kind
#define GM_IN_DIVIDED(kind, name, owned, usage, host, pool, divided, torch, slab, size)            \
	| (divided) << GM_KIND_##kind
#define GM_IN_TORCH(kind, name, owned, usage, host, pool, divided, torch, slab, size)              \
	| (torch) << GM_KIND_##kind
#define GM_IN_SLAB(kind, name, owned, usage, host, pool, divided, torch, slab, size)               \
	| (slab) << GM_KIND_##kind
enum {
	GM_KINDS_OWNED = 0 GM_KIND_TABLE(GM_IN_OWNED),
	GM_KINDS_IN_USAGE = 0 GM_KIND_TABLE(GM_IN_USAGE),
	GM_KINDS_ON_HOST = 0 GM_KIND_TABLE(GM_IN_HOST),
	GM_KINDS_IN_POOL = 0 GM_KIND_TABLE(GM_IN_POOL),
	GM_KINDS_DIVIDED = 0 GM_KIND_TABLE(GM_IN_DIVIDED),
	GM_KINDS_TORCH = 0 GM_KIND_TABLE(GM_IN_TORCH),
	GM_KINDS_IN_SLAB = 0 GM_KIND_TABLE(GM_IN_SLAB)
};
#undef GM_IN_OWNED
#undef GM_IN_USAGE
#undef GM_IN_HOST
#undef GM_IN_POOL
#undef GM_IN_DIVIDED
#undef GM_IN_TORCH
#undef GM_IN_SLAB

/*
 * The functions below need no lock, change nothing and are safe in signal handlers. A kind that is
 * out of range, as a damaged file can have it, is in no set.
 */

static inline bool gm_kind_in(unsigned kinds, unsigned kind)
{
	return kind < GM_KINDS && kinds >> kind & 1;
}

/* The memory belongs to the process: it counts in its level, in totals and in leaks. */
static inline bool gm_kind_owned(unsigned kind)
{
	return gm_kind_in(GM_KINDS_OWNED, kind);
}

/* The memory lies in the host's memory whatever the call says. */
static inline bool gm_kind_on_host(unsigned kind)
{
	return gm_kind_in(GM_KINDS_ON_HOST, kind);
}

/* The driver takes memory of this kind from a pool, unless the allocation names none. */
static inline bool gm_kind_in_pool(unsigned kind)
{
	return gm_kind_in(GM_KINDS_IN_POOL, kind);
}

/* The allocation counts in the usage record of its device and kind: the driver's allocations do,
 * blocks of frameworks do not. */
static inline bool gm_in_usage(unsigned level, unsigned kind)
{
	return level == GM_LEVEL_DRIVER && gm_kind_in(GM_KINDS_IN_USAGE, kind);
}

/* The allocation counts in the level of its device: of the driver's allocations those that are
 * owned, of frameworks and programs' own pools every block. */
static inline bool gm_in_level(unsigned level, unsigned kind)
{
	return level != GM_LEVEL_DRIVER || gm_kind_owned(kind);
}

/* The allocation lies in the reserve of a pool, which is counted as a whole. */
static inline bool gm_in_pool(const struct gm_alloc_record *alloc)
{
	return gm_kind_in_pool(alloc->kind) && alloc->owner != GM_NONE;
}

/* Driver memory that an allocator can divide into blocks: device memory under an address, or a
 * mapping. */
static inline bool gm_is_divisible(const struct gm_alloc_record *alloc)
{
	return alloc->level == GM_LEVEL_DRIVER && alloc->bytes > 0 &&
	       (alloc->space == GM_SPACE_MAPPING ||
		(alloc->space == GM_SPACE_POINTER && gm_kind_in(GM_KINDS_DIVIDED, alloc->kind)));
}

/*
 * Returns whether a mark is the program's. Ranges that GPUMEMTRACE_MARK names are: the program made
 * them, and the user asked for these. Signals and snapshots come from outside at any moment.
 */
static inline bool gm_mark_by_program(uint32_t source)
{
	return source == GM_MARK_PROGRAM || source == GM_MARK_NVTX;
}

#endif
