/*
 * Counting PyTorch's blocks without the lock.
 */
#include "track/block_counts.h"

#include <string.h>

GM_HOT_HOOK struct gm_counted *gm_counted;
uint16_t gm_sampled_places[GM_SAMPLED_PLACES];

void gm_track_count_blocks(struct gm_counted *counted)
{
	gm_counted = counted;
}

void gm_note_sampled(uint64_t block, int change)
{
	uint16_t *place = gm_sampled_place(block);

	__atomic_store_n(place, (uint16_t)(*place + change), __ATOMIC_RELAXED);
}

void gm_blocks_reset(void)
{
	memset(gm_sampled_places, 0, sizeof(gm_sampled_places));
}
