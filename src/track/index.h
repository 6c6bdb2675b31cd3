/*
 * An index from keys to values, in private memory: a hash table of 16-byte slots with linear
 * probing and without tombstones, so that a look-up is one cache line whatever happened before. The
 * live table has one (live.h), whose values are the offsets of records, and the slabs have one
 * (slabs.h).
 *
 * The caller holds the tracker's lock, but for gm_index_prefetch.
 */
#ifndef GM_TRACK_INDEX_H
#define GM_TRACK_INDEX_H

#include "stack/arena.h"

#include <stdbool.h>
#include <stdint.h>

#define GM_INDEX_VALUES ((1u << 28) - 1) /* values are below */

struct gm_index_slot {
	uint64_t key;
	uint32_t tag; /* value << 4 | (space + 1); 0: the slot is empty */
	union {
		uint32_t site; /* of an allocation: the offset of its site, 0 if it was not given */
		uint32_t count; /* of a slab: its allocations */
	};
};

/* A zero-initialised index is empty. */
struct gm_index {
	struct gm_index_slot *slots;
	uint32_t mask;	/* number of slots less 1 */
	uint32_t used;	/* slots that are not empty */
	uint32_t limit; /* with so many used slots, five eighths of all, the table grows */
	unsigned shift; /* from a hash to the index of a slot */
};

static inline uint64_t gm_index_hash(unsigned space, uint64_t key)
{
	return (key ^ ((uint64_t)space << 56)) * 0x9e3779b97f4a7c15ull;
}

static inline uint32_t gm_index_value(const struct gm_index_slot *slot)
{
	return slot->tag >> 4;
}

static inline unsigned gm_index_space(const struct gm_index_slot *slot)
{
	return (slot->tag & 15) - 1;
}

static inline uint32_t gm_index_tag(unsigned space, uint32_t value)
{
	return value << 4 | (space + 1);
}

static inline bool gm_index_is(const struct gm_index_slot *slot, unsigned space, uint64_t key)
{
	return slot->key == key && (slot->tag & 15) == space + 1;
}

/* Returns the slot of a key, NULL if there is none. */
static inline struct gm_index_slot *gm_index_find(const struct gm_index *index, unsigned space,
						  uint64_t key)
{
	uint32_t at;

	if (!index->slots)
		return NULL;
	for (at = (uint32_t)(gm_index_hash(space, key) >> index->shift);;
	     at = (at + 1) & index->mask) {
		struct gm_index_slot *slot = &index->slots[at];

		if (gm_index_is(slot, space, key))
			return slot;
		if (!slot->tag)
			return NULL;
	}
}

/*
 * Returns the empty slot that a new key would get; NULL if the key has a slot already or the table
 * has to grow first.
 */
static inline struct gm_index_slot *gm_index_find_empty(const struct gm_index *index,
							unsigned space, uint64_t key)
{
	uint32_t at;

	if (index->used >= index->limit)
		return NULL;
	for (at = (uint32_t)(gm_index_hash(space, key) >> index->shift);;
	     at = (at + 1) & index->mask) {
		struct gm_index_slot *slot = &index->slots[at];

		if (!slot->tag)
			return slot;
		if (gm_index_is(slot, space, key))
			return NULL;
	}
}

/* Fills the slot that gm_index_find_empty returned. */
static inline void gm_index_fill(struct gm_index *index, struct gm_index_slot *slot, unsigned space,
				 uint64_t key, uint32_t value, uint32_t site)
{
	*slot = (struct gm_index_slot){.key = key, .tag = gm_index_tag(space, value), .site = site};
	index->used++;
}

/*
 * The slow path of gm_index_clear: closes the gap that a slot leaves. Slots behind it may move up.
 */
void gm_index_close_gap(struct gm_index *index, uint32_t gap);

/* Makes a slot empty. Other slots may move. */
static inline void gm_index_clear(struct gm_index *index, struct gm_index_slot *slot)
{
	uint32_t at = (uint32_t)(slot - index->slots);

	if (index->slots[(at + 1) & index->mask].tag) {
		gm_index_close_gap(index, at);
		return;
	}
	slot->tag = 0;
	index->used--;
}

/*
 * Prefetches the slot of a key. Any thread, without the lock: the address may be outdated, and a
 * prefetch of any address does no harm.
 */
static inline void gm_index_prefetch(const struct gm_index *index, unsigned space, uint64_t key)
{
	uintptr_t slots = (uintptr_t)__atomic_load_n(&index->slots, __ATOMIC_RELAXED);
	unsigned shift = __atomic_load_n(&index->shift, __ATOMIC_RELAXED);
	uint64_t slot = gm_index_hash(space, key) >> (shift & 63);

	__builtin_prefetch((const void *)(slots + slot * sizeof(struct gm_index_slot)), 1);
}

/*
 * Adds a key. If it has a slot already, that is found again once the new one was removed. Returns
 * false without memory, or if the value is too high.
 */
bool gm_index_add(struct gm_index *index, struct gm_arena *arena, unsigned space, uint64_t key,
		  uint32_t value, uint32_t site);

/* Removes the slot of a key that has this value, if there is one. Other slots may move. */
void gm_index_remove(struct gm_index *index, unsigned space, uint64_t key, uint32_t value);

#endif
