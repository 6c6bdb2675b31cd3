/*
 * The part of the index that changes its size or the order of its slots.
 */
#include "track/index.h"

#include <string.h>

#define FIRST_BITS 8u

/* Returns the index of the slot at which the search for an entry's key begins. */
static uint32_t home(const struct gm_index *index, const struct gm_index_slot *slot)
{
	return (uint32_t)(gm_index_hash(gm_index_space(slot), slot->key) >> index->shift);
}

static void insert(struct gm_index *index, const struct gm_index_slot *entry)
{
	uint32_t at = home(index, entry);

	while (index->slots[at & index->mask].tag)
		at++;
	index->slots[at & index->mask] = *entry;
}

/* Inserts an entry before those of the same key, which move on. */
static void insert_first(struct gm_index *index, struct gm_index_slot *entry)
{
	uint32_t at = home(index, entry);

	for (; index->slots[at & index->mask].tag; at++) {
		struct gm_index_slot *slot = &index->slots[at & index->mask], moved = *slot;

		if (gm_index_is(slot, gm_index_space(entry), entry->key)) {
			*slot = *entry;
			*entry = moved;
		}
	}
	index->slots[at & index->mask] = *entry;
}

static bool grow(struct gm_index *index, struct gm_arena *arena)
{
	struct gm_index old = *index;
	unsigned bits = old.slots ? 64 - old.shift + 1 : FIRST_BITS;
	size_t bytes = sizeof(*index->slots) << bits;
	struct gm_index_slot *slots = bits < 32 ? gm_arena_alloc(arena, bytes) : NULL;
	uint32_t i;

	if (!slots)
		return false;
	memset(slots, 0, bytes);
	__atomic_store_n(&index->slots, slots, __ATOMIC_RELAXED);
	__atomic_store_n(&index->shift, 64 - bits, __ATOMIC_RELAXED);
	index->mask = (uint32_t)((1ull << bits) - 1);
	index->limit = index->mask / 8 * 5;
	for (i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].tag)
			insert(index, &old.slots[i]);
	if (old.slots)
		gm_arena_free(arena, old.slots, sizeof(*old.slots) * ((size_t)old.mask + 1));
	return true;
}

bool gm_index_add(struct gm_index *index, struct gm_arena *arena, unsigned space, uint64_t key,
		  uint32_t value, uint32_t site)
{
	struct gm_index_slot entry = {.key = key, .tag = gm_index_tag(space, value), .site = site};

	if (value >= GM_INDEX_VALUES)
		return false;
	/* A table that cannot grow is filled up to its last slot but one. */
	if (index->used >= index->limit) {
		if (!grow(index, arena) && (!index->slots || index->used >= index->mask))
			return false;
	}
	insert_first(index, &entry);
	index->used++;
	return true;
}

/* Moves the following slots up as if the entry at the gap had never been there. */
void gm_index_close_gap(struct gm_index *index, uint32_t gap)
{
	uint32_t at = gap;
	struct gm_index_slot *next;

	for (;;) {
		at = (at + 1) & index->mask;
		next = &index->slots[at];
		if (!next->tag)
			break;
		/* An entry may move up only if its home does not lie between the gap and itself. */
		if (((at - home(index, next)) & index->mask) >= ((at - gap) & index->mask)) {
			index->slots[gap] = *next;
			gap = at;
		}
	}
	index->slots[gap].tag = 0;
	index->used--;
}

void gm_index_remove(struct gm_index *index, unsigned space, uint64_t key, uint32_t value)
{
	uint32_t tag = gm_index_tag(space, value), at;

	if (!index->slots)
		return;
	for (at = (uint32_t)(gm_index_hash(space, key) >> index->shift);; at++) {
		const struct gm_index_slot *slot = &index->slots[at & index->mask];

		if (!slot->tag)
			return;
		if (slot->tag == tag && slot->key == key) {
			gm_index_close_gap(index, at & index->mask);
			return;
		}
	}
}
