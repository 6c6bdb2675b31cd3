/*
 * The free blocks of one pool and stream in the order of PyTorch's allocator: by size, then by
 * address. Best fit, insertion and removal cost a binary search in one of 424 bins.
 */
#ifndef GM_REPORT_WHATIF_FREE_BLOCKS_H
#define GM_REPORT_WHATIF_FREE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define GM_FREE_BINS 424

struct gm_free_block {
	uint64_t bytes, address;
	uint32_t block; /* the caller's number */
};

struct gm_free_bin {
	struct gm_free_block *blocks; /* ascending */
	unsigned count, room;
};

struct gm_free_blocks {
	struct gm_free_bin bins[GM_FREE_BINS];
	uint64_t filled[(GM_FREE_BINS + 63) / 64]; /* a bit for each bin that is not empty */
};

/* A place in the order; valid until the set changes. */
struct gm_free_place {
	unsigned bin, at;
};

/* Adds a block; bytes are a multiple of 512. */
void gm_free_blocks_add(struct gm_free_blocks *set, struct gm_free_block block);

/* Takes out a block that is there. */
void gm_free_blocks_remove(struct gm_free_blocks *set, uint64_t bytes, uint64_t address);

/* Takes out the block at a place. */
void gm_free_blocks_remove_at(struct gm_free_blocks *set, struct gm_free_place place);

/* The first block of at least `bytes`; NULL without one. */
const struct gm_free_block *gm_free_blocks_fit(const struct gm_free_blocks *set, uint64_t bytes,
					       struct gm_free_place *place);

/* The block after a place, which moves there; NULL past the last. */
const struct gm_free_block *gm_free_blocks_next(const struct gm_free_blocks *set,
						struct gm_free_place *place);

/* The last block, the largest; NULL if the set is empty. */
const struct gm_free_block *gm_free_blocks_last(const struct gm_free_blocks *set);

void gm_free_blocks_free(struct gm_free_blocks *set);

#endif
