/*
 * The latest frees by key.
 */
#include "track/freed.h"
#include "track/state.h"

GM_HOT struct gm_freed *gm_freed_sets;

void gm_freed_reset(void)
{
	gm_freed_sets = NULL; /* the arena was freed as a whole */
}

/* Returns the free of a key in its set, NULL if it is not there. */
static inline struct gm_freed *find(struct gm_freed *set, unsigned space, uint64_t key)
{
	unsigned i;

	for (i = 0; i < GM_FREED_WAYS; i++)
		if (set[i].key == key && (set[i].when >> 4 & 15) == space)
			return &set[i];
	return NULL;
}

static inline struct gm_freed *oldest(struct gm_freed *set)
{
	struct gm_freed *slot = set;
	unsigned i;

	for (i = 1; i < GM_FREED_WAYS; i++)
		if (set[i].when < slot->when)
			slot = &set[i];
	return slot;
}

static GM_COLD void remember_first(const struct gm_alloc_record *alloc, uint32_t stack,
				   unsigned cause)
{
	/* The arena maps so large a piece for itself, so it is zeroed. */
	gm_freed_sets = gm_arena_alloc(&gm_track_arena, (size_t)GM_FREED_SETS * GM_FREED_WAYS *
								sizeof(*gm_freed_sets));
	if (gm_freed_sets)
		gm_freed_remember(alloc, stack, cause);
}

GM_HOT_CODE void gm_freed_remember(const struct gm_alloc_record *alloc, uint32_t stack,
				   unsigned cause)
{
	uint64_t key = alloc->key;
	unsigned space = alloc->space;
	struct gm_freed *set, *slot;

	if (__builtin_expect(!gm_freed_sets, 0)) {
		remember_first(alloc, stack, cause);
		return;
	}
	set = gm_freed_set(space, key);
	slot = find(set, space, key);
	if (!slot)
		slot = oldest(set);
	slot->key = key;
	slot->bytes = alloc->bytes;
	slot->when = gm_track.now_ns << 8 | space << 4 | cause;
	slot->stack = stack;
	slot->site = alloc->site;
}

const struct gm_freed *gm_freed_find(unsigned space, uint64_t key)
{
	return gm_freed_sets ? find(gm_freed_set(space, key), space, key) : NULL;
}
