/*
 * The part of map.h that writes, and the hash of longer things.
 */
#include "stack/map.h"

#include <string.h>

#define FIRST_SLOTS 256u

static void place(struct gm_map_slots *slots, uint64_t hash, uint64_t value)
{
	uint32_t at = (uint32_t)hash & slots->mask;

	while (slots->slot[at].value)
		at = (at + 1) & slots->mask;
	slots->slot[at].hash = hash;
	__atomic_store_n(&slots->slot[at].value, value, __ATOMIC_RELEASE);
}

static bool grow(struct gm_map *map, struct gm_arena *arena)
{
	uint32_t size = map->slots ? (map->slots->mask + 1) * 2 : FIRST_SLOTS;
	size_t bytes = sizeof(*map->slots) + (size_t)size * sizeof(struct gm_map_slot);
	struct gm_map_slots *larger;

	if (!size)
		return false;
	larger = gm_arena_alloc(arena, bytes);
	if (!larger)
		return false;
	memset(larger, 0, bytes);
	larger->mask = size - 1;
	map->count = 0;
	for (uint32_t i = 0; map->slots && i <= map->slots->mask; i++) {
		const struct gm_map_slot *slot = &map->slots->slot[i];

		if (!slot->value || slot->value == GM_MAP_GONE)
			continue;
		place(larger, slot->hash, slot->value);
		map->count++;
	}
	__atomic_store_n(&map->slots, larger, __ATOMIC_RELEASE);
	return true;
}

bool gm_map_add(struct gm_map *map, struct gm_arena *arena, uint64_t hash, uint64_t value)
{
	/* at most five eighths full */
	if (!map->slots || map->count + 1 > (map->slots->mask + 1) / 8 * 5) {
		if (!grow(map, arena))
			return false;
	}
	place(map->slots, hash, value);
	map->count++;
	return true;
}

static inline uint64_t fold(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t word_at(const char *data)
{
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	return word;
}

/* Two chains of folded multiplications, 32 bytes a round: they run side by side in the processor.
 */
uint64_t gm_hash(const void *data, uint64_t bytes, uint64_t seed)
{
	const uint64_t k0 = 0xa0761d6478bd642full, k1 = 0xe7037ed1a0b428dbull;
	const uint64_t k2 = 0x8ebc6af09c88c6e3ull, k3 = 0x589965cc75374cc3ull;
	uint64_t first = seed ^ k0, second = seed ^ k2, last[4] = {0};
	const char *at = data;
	uint64_t left = bytes;

	for (; left >= 32; at += 32, left -= 32) {
		first = fold(word_at(at) ^ k1, word_at(at + 8) ^ first);
		second = fold(word_at(at + 16) ^ k3, word_at(at + 24) ^ second);
	}
	if (left) {
		memcpy(last, at, left);
		first = fold(last[0] ^ k1, last[1] ^ first);
		second = fold(last[2] ^ k3, last[3] ^ second);
	}
	return fold(first ^ k0, second ^ bytes ^ k1);
}
