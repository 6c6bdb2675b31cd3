/*
 * The index of the live table: key → record, in private memory. A hash table of 16-byte slots with
 * linear probing and no tombstones, so that a look-up is one cache line whatever went before. For
 * live.c, blocks.c and calls.c; slabs have one too (slabs.h). Everything under the tracker's lock but
 * gm_index_prefetch.
 */
#ifndef GM_TRACK_INDEX_H
#define GM_TRACK_INDEX_H

#include "stack/arena.h"

#include <stdbool.h>
#include <stdint.h>

#define GM_INDEX_MOST_NUMBERS ((1u << 28) - 1)

struct gm_index_slot {
	uint64_t key;
	uint32_t what; /* record number << 4 | (space + 1); 0: not in use */
	union {
		uint32_t site;	/* of an allocation's record */
		uint32_t count; /* of allocations in a slab (slabs.h) */
	};
};

/* Zero-initialised is an empty index. */
struct gm_index {
	struct gm_index_slot *slots;
	uint32_t mask, used;
	uint32_t most;	/* used, five eighths: then it grows */
	unsigned shift; /* of a hash to the number of a slot */
};

static inline uint64_t gm_index_hash(unsigned space, uint64_t key)
{
	return (key ^ ((uint64_t)space << 56)) * 0x9e3779b97f4a7c15ull;
}

static inline uint32_t gm_index_number(const struct gm_index_slot *slot)
{
	return slot->what >> 4;
}

static inline unsigned gm_index_space(const struct gm_index_slot *slot)
{
	return (slot->what & 15) - 1;
}

static inline uint32_t gm_index_what(unsigned space, uint32_t number)
{
	return number << 4 | (space + 1);
}

static inline bool gm_index_is(const struct gm_index_slot *slot, unsigned space, uint64_t key)
{
	return slot->key == key && (slot->what & 15) == space + 1;
}

/* The slot of a key, NULL if there is none. */
static inline struct gm_index_slot *gm_index_find(const struct gm_index *index, unsigned space,
						  uint64_t key)
{
	uint32_t at;

	if (!index->slots)
		return NULL;
	for (at = (uint32_t)(gm_index_hash(space, key) >> index->shift);; at = (at + 1) & index->mask) {
		struct gm_index_slot *slot = &index->slots[at];

		if (gm_index_is(slot, space, key))
			return slot;
		if (!slot->what)
			return NULL;
	}
}

/* The slot that a key would get, NULL if it has one already or the table is to grow first. */
static inline struct gm_index_slot *gm_index_place(const struct gm_index *index, unsigned space,
						   uint64_t key)
{
	uint32_t at;

	if (index->used >= index->most)
		return NULL;
	for (at = (uint32_t)(gm_index_hash(space, key) >> index->shift);; at = (at + 1) & index->mask) {
		struct gm_index_slot *slot = &index->slots[at];

		if (!slot->what)
			return slot;
		if (gm_index_is(slot, space, key))
			return NULL;
	}
}

static inline void gm_index_put(struct gm_index *index, struct gm_index_slot *place, unsigned space,
				uint64_t key, uint32_t number, uint32_t site)
{
	*place = (struct gm_index_slot){.key = key, .what = gm_index_what(space, number), .site = site};
	index->used++;
}

/* Closes the gap that a slot leaves; those that follow may move up. */
void gm_index_close(struct gm_index *index, uint32_t hole);

/* Removes a slot. */
static inline void gm_index_take(struct gm_index *index, struct gm_index_slot *slot)
{
	uint32_t at = (uint32_t)(slot - index->slots);

	if (index->slots[(at + 1) & index->mask].what) {
		gm_index_close(index, at);
		return;
	}
	slot->what = 0;
	index->used--;
}

/* Has a key's slot on its way into the cache. Any thread, no lock: a guess that does no harm. */
static inline void gm_index_prefetch(const struct gm_index *index, unsigned space, uint64_t key)
{
	const struct gm_index_slot *slots = __atomic_load_n(&index->slots, __ATOMIC_RELAXED);
	unsigned shift = __atomic_load_n(&index->shift, __ATOMIC_RELAXED);

	if (slots)
		__builtin_prefetch(slots + (gm_index_hash(space, key) >> (shift & 63)), 1);
}

/*
 * Adds a key; one that is there already is found again when this one was removed. False without
 * memory for it, or for a number that is too high.
 */
bool gm_index_add(struct gm_index *index, struct gm_arena *arena, unsigned space, uint64_t key,
		  uint32_t number, uint32_t site);

/* Removes a record's slot, if it is there. Other slots may move. */
void gm_index_remove(struct gm_index *index, unsigned space, uint64_t key, uint32_t number);

#endif
