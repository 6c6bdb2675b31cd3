/*
 * See sort.h: a radix sort from the lowest byte on, which passes over bytes that all keys share.
 */
#include "report/support/sort.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

#define DIGITS 256

/* Moves the entries of `from` to `to` in order of one byte of their keys. */
static void pass(const struct gm_keyed *from, struct gm_keyed *to, size_t count, unsigned shift)
{
	size_t next[DIGITS] = {0}, before = 0;

	for (size_t i = 0; i < count; i++)
		next[from[i].key >> shift & (DIGITS - 1)]++;
	for (unsigned digit = 0; digit < DIGITS; digit++) {
		size_t entries = next[digit];

		next[digit] = before;
		before += entries;
	}
	for (size_t i = 0; i < count; i++)
		to[next[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
}

void gm_sort_keyed(struct gm_keyed *list, size_t count)
{
	struct gm_keyed *from = list, *to = gm_realloc(NULL, count * sizeof(*to) + 1), *spare = to;
	uint64_t differ = 0;

	for (size_t i = 1; i < count; i++)
		differ |= list[i].key ^ list[0].key;
	for (unsigned shift = 0; shift < 64; shift += 8) {
		struct gm_keyed *sorted = to;

		if (!(differ >> shift & (DIGITS - 1)))
			continue;
		pass(from, to, count, shift);
		to = from;
		from = sorted;
	}
	if (from != list)
		memcpy(list, from, count * sizeof(*list));
	free(spare);
}
