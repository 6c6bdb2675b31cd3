/*
 * The latest frees, by key, in bounded private memory: when CUDA refuses a free, this tells who freed
 * the memory first. Sets of four, the oldest of a set goes. Called under the tracker's lock.
 */
#include "track/state.h"

#define SETS 16384u
#define WAYS 4u

_Static_assert(GM_SPACES <= 16 && GM_IMPLICIT_CAUSES < 16, "each has four bits");

GM_HOT static struct gm_freed *freed; /* SETS * WAYS */

void gm_freed_reset(void)
{
	freed = NULL; /* the arena went with everything in it */
}

static struct gm_freed *set_of(unsigned space, uint64_t key)
{
	uint64_t hash = (key ^ ((uint64_t)space << 56)) * 0x9e3779b97f4a7c15ull;

	return freed + (hash >> 40) % SETS * WAYS;
}

/* Where in its set the free of a key is, NULL: nowhere. */
static inline struct gm_freed *find(struct gm_freed *set, unsigned space, uint64_t key)
{
	unsigned i;

	for (i = 0; i < WAYS; i++)
		if (set[i].key == key && (set[i].when >> 4 & 15) == space)
			return &set[i];
	return NULL;
}

static inline struct gm_freed *oldest(struct gm_freed *set)
{
	struct gm_freed *slot = set;
	unsigned i;

	for (i = 1; i < WAYS; i++)
		if (set[i].when < slot->when)
			slot = &set[i];
	return slot;
}

static __attribute__((noinline, cold)) void note_first(const struct gm_alloc_record *alloc, uint32_t stack,
						       unsigned cause)
{
	/* so large a piece is mapped for itself, zeroed */
	freed = gm_arena_alloc(&gm_track.arena, (size_t)SETS * WAYS * sizeof(*freed));
	if (freed)
		gm_freed_note(alloc, stack, cause);
}

GM_HOT_CODE void gm_freed_note(const struct gm_alloc_record *alloc, uint32_t stack, unsigned cause)
{
	uint64_t key = alloc->key;
	unsigned space = alloc->space;
	struct gm_freed *set, *slot;

	if (__builtin_expect(!freed, 0)) {
		note_first(alloc, stack, cause);
		return;
	}
	set = set_of(space, key);
	slot = find(set, space, key);
	if (!slot)
		slot = oldest(set);
	slot->key = key;
	slot->bytes = alloc->bytes;
	slot->when = gm_track.now_ns << 8 | space << 4 | cause;
	slot->stack = stack;
	slot->site = alloc->site;
}

GM_HOT_CODE void gm_freed_prefetch(unsigned space, uint64_t key)
{
	const struct gm_freed *set = set_of(space, key);

	if (!freed)
		return;
	__builtin_prefetch(set, 1);
	__builtin_prefetch(set + WAYS - 1, 1);
}

const struct gm_freed *gm_freed_find(unsigned space, uint64_t key)
{
	return freed ? find(set_of(space, key), space, key) : NULL;
}
