/*
 * Bins of free blocks (free_blocks.h): sizes up to 8 KiB have a bin each, larger ones share eight
 * bins for each power of two. A bin is an ordered array.
 */
#include "report/whatif/free_blocks.h"
#include "report/support/memory.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define UNIT_SHIFT 9 /* sizes are multiples of 512 */
#define FINE	   16

static unsigned bin_of(uint64_t bytes)
{
	uint64_t units = bytes >> UNIT_SHIFT;
	unsigned power;

	if (units < FINE)
		return (unsigned)units;
	power = 63 - (unsigned)__builtin_clzll(units);
	return FINE + (power - 4) * 8 + (unsigned)(units >> (power - 3) & 7);
}

/*
 * Returns the index of a block of this size and address in its bin, or the index that it would
 * have.
 */
static unsigned place_of(const struct gm_free_bin *bin, uint64_t bytes, uint64_t address)
{
	unsigned low = 0, high = bin->count;

	while (low < high) {
		unsigned middle = (low + high) / 2;
		const struct gm_free_block *block = &bin->blocks[middle];

		if (block->bytes < bytes || (block->bytes == bytes && block->address < address))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void gm_free_blocks_add(struct gm_free_blocks *set, struct gm_free_block block)
{
	unsigned number = bin_of(block.bytes), at;
	struct gm_free_bin *bin = &set->bins[number];

	if (bin->count == bin->room) {
		bin->room = bin->room ? 2 * bin->room : 8;
		bin->blocks = gm_realloc(bin->blocks, bin->room * sizeof(*bin->blocks));
	}
	at = place_of(bin, block.bytes, block.address);
	memmove(&bin->blocks[at + 1], &bin->blocks[at], (bin->count - at) * sizeof(*bin->blocks));
	bin->blocks[at] = block;
	bin->count++;
	set->filled[number / 64] |= 1ull << number % 64;
}

void gm_free_blocks_remove(struct gm_free_blocks *set, uint64_t bytes, uint64_t address)
{
	unsigned number = bin_of(bytes), at;
	struct gm_free_bin *bin = &set->bins[number];

	at = place_of(bin, bytes, address);
	bin->count--;
	memmove(&bin->blocks[at], &bin->blocks[at + 1], (bin->count - at) * sizeof(*bin->blocks));
	if (!bin->count)
		set->filled[number / 64] &= ~(1ull << number % 64);
}

/* The first block of the bins from `number` on. */
static const struct gm_free_block *first_from(const struct gm_free_blocks *set, unsigned number,
					      struct gm_free_place *place)
{
	for (unsigned word = number / 64; word < sizeof(set->filled) / sizeof(set->filled[0]);
	     word++) {
		uint64_t bits = set->filled[word];

		if (word == number / 64)
			bits &= ~0ull << number % 64;
		if (!bits)
			continue;
		place->bin = word * 64 + (unsigned)__builtin_ctzll(bits);
		place->at = 0;
		return set->bins[place->bin].blocks;
	}
	return NULL;
}

const struct gm_free_block *gm_free_blocks_fit(const struct gm_free_blocks *set, uint64_t bytes,
					       struct gm_free_place *place)
{
	unsigned number = bin_of(bytes);
	const struct gm_free_bin *bin = &set->bins[number];

	if (bin->count && bin->blocks[bin->count - 1].bytes >= bytes) {
		place->bin = number;
		place->at = place_of(bin, bytes, 0);
		return &bin->blocks[place->at];
	}
	return number + 1 < GM_FREE_BINS ? first_from(set, number + 1, place) : NULL;
}

const struct gm_free_block *gm_free_blocks_next(const struct gm_free_blocks *set,
						struct gm_free_place *place)
{
	const struct gm_free_bin *bin = &set->bins[place->bin];

	if (place->at + 1 < bin->count)
		return &bin->blocks[++place->at];
	return place->bin + 1 < GM_FREE_BINS ? first_from(set, place->bin + 1, place) : NULL;
}

const struct gm_free_block *gm_free_blocks_last(const struct gm_free_blocks *set)
{
	for (unsigned word = sizeof(set->filled) / sizeof(set->filled[0]); word-- > 0;) {
		const struct gm_free_bin *bin;

		if (!set->filled[word])
			continue;
		bin = &set->bins[word * 64 + 63 - (unsigned)__builtin_clzll(set->filled[word])];
		return &bin->blocks[bin->count - 1];
	}
	return NULL;
}

void gm_free_blocks_free(struct gm_free_blocks *set)
{
	for (unsigned i = 0; i < GM_FREE_BINS; i++)
		free(set->bins[i].blocks);
}
