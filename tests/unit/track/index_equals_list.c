/*
 * The live table's index against a list: random additions, removals and look-ups in three spaces,
 * with keys that come twice and a table that grows meanwhile. Argument: how many steps.
 */
#include "track/index.h"

#include <stdio.h>
#include <stdlib.h>

#define KEYS	 4096u
#define MOST	 16384u
#define CLUSTER	 97u /* keys that are far apart and hash as they like */

struct entry {
	unsigned space;
	uint64_t key;
	uint32_t number;
};

static struct entry list[MOST]; /* the newest last */
static uint32_t count;
static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 11) % below;
}

/* What a look-up is to find: the newest of that key. */
static const struct entry *newest(unsigned space, uint64_t key)
{
	uint32_t i;

	for (i = count; i-- > 0;)
		if (list[i].space == space && list[i].key == key)
			return &list[i];
	return NULL;
}

static int agrees(const struct gm_index *index, unsigned space, uint64_t key)
{
	const struct gm_index_slot *slot = gm_index_find(index, space, key);
	const struct entry *entry = newest(space, key);

	if (!slot || !entry)
		return !slot && !entry;
	return gm_index_value(slot) == entry->number && slot->site == entry->number * 7 &&
	       gm_index_space(slot) == space;
}

static int add(struct gm_index *index, struct gm_arena *arena, unsigned space, uint64_t key,
	       uint32_t number)
{
	struct gm_index_slot *place = gm_index_find_empty(index, space, key);

	if (place && newest(space, key))
		return 0; /* it has a slot already */
	if (place && draw(2))
		gm_index_fill(index, place, space, key, number, number * 7);
	else if (!gm_index_add(index, arena, space, key, number, number * 7))
		return 0;
	list[count++] = (struct entry){space, key, number};
	return 1;
}

static void drop(struct gm_index *index, uint32_t at)
{
	struct entry gone = list[at];
	struct gm_index_slot *slot = gm_index_find(index, gone.space, gone.key);

	if (!slot)
		exit(5);
	if (gm_index_value(slot) == gone.number && draw(2))
		gm_index_clear(index, slot);
	else
		gm_index_remove(index, gone.space, gone.key, gone.number);
	for (count--; at < count; at++)
		list[at] = list[at + 1];
}

int main(int argc, char **argv)
{
	unsigned long steps = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000, i;
	struct gm_index index = {0};
	struct gm_arena arena = {0};
	uint32_t most = 0;

	for (i = 0; i < steps; i++) {
		unsigned space = draw(3);
		uint64_t key = draw(KEYS) * (draw(2) ? 512ull : CLUSTER << 20);
		/* it fills for a while, then empties, and so on */
		int fill = i / 4096 % 3 != 2;

		if (count < MOST && (!count || draw(4) < (fill ? 3u : 1u))) {
			if (!add(&index, &arena, space, key, (uint32_t)i))
				return 1;
		} else {
			drop(&index, draw(count));
		}
		if (index.used != count || !agrees(&index, space, key) ||
		    !agrees(&index, draw(3), draw(KEYS) * 512ull))
			return 2;
		most = count > most ? count : most;
	}
	while (count)
		drop(&index, draw(count));
	for (i = 0; i <= index.mask; i++)
		if (index.slots[i].tag)
			return 3;
	gm_arena_reset(&arena);
	printf("%lu steps, %u at most\n", steps, most);
	return most > 1000 ? 0 : 4;
}
