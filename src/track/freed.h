/*
 * The latest frees, by key, in bounded private memory: when CUDA refuses a free, this tells who freed the
 * memory first. Private to track/, under the lock.
 */
#ifndef GM_TRACK_FREED_H
#define GM_TRACK_FREED_H

#include "store/hot.h"
#include "track/index.h"
#include "track/state.h"

struct gm_freed {
	uint64_t key, bytes;
	uint64_t when; /* time_ns << 8 | enum gm_space << 4 | cause */
	uint32_t stack, site;
};
_Static_assert(sizeof(struct gm_freed) == 32, "a set lies in two cache lines");
_Static_assert(GM_SPACES <= 16 && GM_IMPLICIT_CAUSES < 16, "each has four bits");

/* Sets of four, the oldest of a set goes. */
#define GM_FREED_SETS 16384u
#define GM_FREED_WAYS 4u

extern struct gm_freed *gm_freed_sets __attribute__((visibility("hidden"))); /* NULL before the first */

/* `cause`: 0 a free call, else enum gm_implicit_cause + 1. */
void gm_freed_note(const struct gm_alloc_record *alloc, uint32_t stack, unsigned cause);
const struct gm_freed *gm_freed_find(unsigned space, uint64_t key);
void gm_freed_reset(void);

static inline unsigned gm_freed_cause(const struct gm_freed *freed)
{
	return freed->when & 15;
}

static inline struct gm_freed *gm_freed_set(unsigned space, uint64_t key)
{
	return gm_freed_sets + (gm_index_hash(space, key) >> 40) % GM_FREED_SETS * GM_FREED_WAYS;
}

/* Has what gm_freed_note will change on its way into the cache. */
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
