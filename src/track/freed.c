/*
 * The latest frees, by key, in bounded private memory: when CUDA refuses a free, this tells who freed
 * the memory first. Sets of four, the oldest of a set goes. Called under the tracker's lock.
 */
#include "track/state.h"

#define SETS 16384u
#define WAYS 4u

static struct gm_freed *freed; /* SETS * WAYS */

void gm_freed_reset(void)
{
	freed = NULL; /* the arena went with everything in it */
}

static struct gm_freed *set_of(unsigned space, uint64_t key)
{
	uint64_t hash = (key ^ ((uint64_t)space << 56)) * 0x9e3779b97f4a7c15ull;

	return freed + (hash >> 40) % SETS * WAYS;
}

void gm_freed_note(const struct gm_alloc_record *alloc, uint32_t stack, unsigned cause)
{
	struct gm_freed *set, *slot;
	unsigned i;

	if (!freed) {
		/* so large a piece is mapped for itself, zeroed */
		freed = gm_arena_alloc(&gm_track.arena, (size_t)SETS * WAYS * sizeof(*freed));
		if (!freed)
			return;
	}
	set = slot = set_of(alloc->space, alloc->key);
	for (i = 0; i < WAYS; i++) {
		if (set[i].key == alloc->key && set[i].space == alloc->space) {
			slot = &set[i];
			break;
		}
		if (set[i].time_ns < slot->time_ns)
			slot = &set[i];
	}
	slot->key = alloc->key;
	slot->space = alloc->space;
	slot->kind = alloc->kind;
	slot->bytes = alloc->bytes;
	slot->time_ns = gm_track.now_ns;
	slot->stack = stack;
	slot->site = alloc->site;
	slot->cause = (uint8_t)cause;
}

const struct gm_freed *gm_freed_find(unsigned space, uint64_t key)
{
	struct gm_freed *set;
	unsigned i;

	if (!freed)
		return NULL;
	set = set_of(space, key);
	for (i = 0; i < WAYS; i++)
		if (set[i].key == key && set[i].space == space)
			return &set[i];
	return NULL;
}
