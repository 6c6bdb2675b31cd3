/*
 * The latest frees by key, in bounded private memory. When CUDA refuses a free, they tell what
 * freed the memory first. For track/, under the lock.
 */
#ifndef GM_TRACK_FREED_H
#define GM_TRACK_FREED_H

#include "store/hot.h"
#include "store/layout.h"
#include "track/index.h"

struct gm_freed {
	uint64_t key, bytes;
	uint64_t when; /* time_ns << 8 | enum gm_space << 4 | cause */
	uint32_t stack, site;
};
_Static_assert(sizeof(struct gm_freed) == 32, "a set lies in two cache lines");
_Static_assert(GM_SPACES <= 16 && GM_IMPLICIT_CAUSES < 16, "each has four bits");

/* The frees are kept in sets of four by a hash of the key; the oldest of a set is replaced. */
#define GM_FREED_SETS 16384u
#define GM_FREED_WAYS 4u

extern struct gm_freed *gm_freed_sets __attribute__((visibility("hidden"))); /* NULL: none yet */

void gm_freed_reset(void);

/* Remembers a free. `cause`: 0 for a free call, else enum gm_implicit_cause + 1. */
void gm_freed_remember(const struct gm_alloc_record *alloc, uint32_t stack, unsigned cause);

/* Returns the latest free of a key, NULL if it is not remembered. */
const struct gm_freed *gm_freed_find(unsigned space, uint64_t key);

static inline unsigned gm_freed_cause(const struct gm_freed *freed)
{
	return freed->when & 15;
}

static inline struct gm_freed *gm_freed_set(unsigned space, uint64_t key)
{
	return gm_freed_sets + (gm_index_hash(space, key) >> 40) % GM_FREED_SETS * GM_FREED_WAYS;
}

/* Prefetches what gm_freed_remember will change. */
static inline void gm_freed_prefetch(unsigned space, uint64_t key)
{
	const struct gm_freed *set;

	if (!gm_freed_sets)
		return;
	set = gm_freed_set(space, key);
	gm_prefetch(set);
	gm_prefetch(set + GM_FREED_WAYS - 1);
}

#endif
