/*
 * A hash map from a 64-bit hash to a 64-bit value, made for one writer at a time and any number of
 * readers without a lock. It only grows; a slot that is filled stays filled. What a value means,
 * and whether equal hashes are equal things, is the user's business: gm_map_next offers the
 * candidates.
 */
#ifndef GM_STACK_MAP_H
#define GM_STACK_MAP_H

#include "stack/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct gm_map_slot {
	uint64_t hash;
	uint64_t value; /* 0: empty; written last, with release */
};

struct gm_map_slots {
	uint32_t mask;
	struct gm_map_slot slot[];
};

/* Zero-initialised is an empty map. */
struct gm_map {
	struct gm_map_slots *slots;
	uint32_t count;
};

/* A value that stands for something gone: nothing equals it. */
#define GM_MAP_GONE 1u

struct gm_map_cursor {
	const struct gm_map_slots *slots;
	uint64_t hash;
	uint32_t at;
};

static inline struct gm_map_cursor gm_map_find(const struct gm_map *map, uint64_t hash)
{
	struct gm_map_cursor cursor = {__atomic_load_n(&map->slots, __ATOMIC_ACQUIRE), hash, 0};

	if (cursor.slots)
		cursor.at = (uint32_t)hash & cursor.slots->mask;
	return cursor;
}

/* The next value under the hash, 0 when there is none left. */
static inline uint64_t gm_map_next(struct gm_map_cursor *cursor)
{
	if (!cursor->slots)
		return 0;
	for (;;) {
		const struct gm_map_slot *slot = &cursor->slots->slot[cursor->at];
		uint64_t value = __atomic_load_n(&slot->value, __ATOMIC_ACQUIRE);

		if (!value)
			return 0;
		cursor->at = (cursor->at + 1) & cursor->slots->mask;
		if (slot->hash == cursor->hash && value != GM_MAP_GONE)
			return value;
	}
}

/*
 * Adds a value (neither 0 nor GM_MAP_GONE). False when there is no memory: then it is not in the
 * map, nothing else changed. The slots that were outgrown stay mapped for the readers that may be
 * in them.
 */
bool gm_map_add(struct gm_map *map, struct gm_arena *arena, uint64_t hash, uint64_t value);

/* A hash of `bytes` bytes; of words it is fastest. */
uint64_t gm_hash(const void *data, uint64_t bytes, uint64_t seed);

/* A hash of three numbers. */
static inline uint64_t gm_hash_numbers(uint64_t a, uint64_t b, uint64_t c)
{
	__uint128_t product =
		(__uint128_t)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xbf58476d1ce4e5b9ull);
	uint64_t folded = (uint64_t)product ^ (uint64_t)(product >> 64) ^ c;

	product = (__uint128_t)(folded ^ 0x94d049bb133111ebull) * (c + 0x2545f4914f6cdd1dull);
	return (uint64_t)product ^ (uint64_t)(product >> 64) ^ folded;
}

#endif
