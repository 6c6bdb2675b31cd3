/*
 * The part of the live table's index (index.h) that changes it.
 */
#include "track/index.h"

#include <string.h>

#define FIRST_BITS 8u

static uint32_t home(const struct gm_index *index, const struct gm_index_slot *slot)
{
	return (uint32_t)(gm_index_hash(gm_index_space(slot), slot->key) >> index->shift);
}

static void place(struct gm_index *index, const struct gm_index_slot *entry)
{
	uint32_t at = home(index, entry);

	while (index->slots[at & index->mask].what)
		at++;
	index->slots[at & index->mask] = *entry;
}

/* Before one of the same key, which moves on. */
static void put_before(struct gm_index *index, struct gm_index_slot *entry)
{
	uint32_t at = home(index, entry);

	for (; index->slots[at & index->mask].what; at++) {
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
	index->most = index->mask / 8 * 5;
	for (i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].what)
			place(index, &old.slots[i]);
	if (old.slots)
		gm_arena_free(arena, old.slots, sizeof(*old.slots) * ((size_t)old.mask + 1));
	return true;
}

bool gm_index_add(struct gm_index *index, struct gm_arena *arena, unsigned space, uint64_t key,
		  uint32_t number, uint32_t site)
{
	struct gm_index_slot entry = {.key = key, .what = gm_index_what(space, number), .site = site};

	if (number >= GM_INDEX_MOST_NUMBERS)
		return false;
	/* a table that cannot grow is used up to its last slot but one */
	if (index->used >= index->most) {
		if (!grow(index, arena) && (!index->slots || index->used >= index->mask))
			return false;
	}
	put_before(index, &entry);
	index->used++;
	return true;
}

/* What follows moves up, as if what was here had never been. */
void gm_index_close(struct gm_index *index, uint32_t hole)
{
	uint32_t at = hole;
	struct gm_index_slot *next;

	for (;;) {
		at = (at + 1) & index->mask;
		next = &index->slots[at];
		if (!next->what)
			break;
		/* it may move up only if its home is not between the hole and itself */
		if (((at - home(index, next)) & index->mask) >= ((at - hole) & index->mask)) {
			index->slots[hole] = *next;
			hole = at;
		}
	}
	index->slots[hole].what = 0;
	index->used--;
}

void gm_index_remove(struct gm_index *index, unsigned space, uint64_t key, uint32_t number)
{
	uint32_t what = gm_index_what(space, number), at;

	if (!index->slots)
		return;
	for (at = (uint32_t)(gm_index_hash(space, key) >> index->shift);; at++) {
		const struct gm_index_slot *slot = &index->slots[at & index->mask];

		if (!slot->what)
			return;
		if (slot->what == what && slot->key == key) {
			gm_index_close(index, at & index->mask);
			return;
		}
	}
}
