/*
 * Counting PyTorch's blocks without the lock, and the blocks that are sampled.
 */
#include "track/block_counts.h"
#include "track/collected.h"
#include "track/in_use.h"
#include "track/levels.h"
#include "track/live.h"
#include "track/peaks.h"
#include "track/sites.h"
#include "track/torch_memory.h"

#include <string.h>

GM_HOT_HOOK struct gm_counted *gm_counted;
uint16_t gm_sampled_places[GM_SAMPLED_PLACES];

void gm_track_count_blocks(struct gm_counted *counted)
{
	gm_counted = counted;
}

void gm_blocks_reset(void)
{
	memset(gm_sampled_places, 0, sizeof(gm_sampled_places));
}

/* Counts a sampled block that comes (1) or goes (-1). */
static void note_sampled(uint64_t block, int change)
{
	uint16_t *place = gm_sampled_place(block);

	__atomic_store_n(place, (uint16_t)(*place + change), __ATOMIC_RELAXED);
}

void gm_sample_add(uint64_t block, uint64_t bytes, int device, struct gm_origin origin)
{
	const struct gm_event event = gm_block_event(block, bytes, device, origin);
	uint64_t level_bytes = gm_in_use_blocks(device) + bytes;
	uint32_t index = gm_find_or_make_site(&event);
	struct gm_site_record *site = gm_store_record(GM_TABLE_SITES, index);
	struct gm_alloc_record *record = site ? gm_live_add(&event, index) : NULL;
	const struct gm_counters in = {.site = site,
				       .extra = origin.extra,
				       .level = gm_level_of(device, GM_LEVEL_TORCH)};

	if (!record)
		return;
	note_sampled(block, 1);
	gm_site_catch_up(site);
	gm_count_alloc(&in, bytes, record->serial, gm_track.now_ns);
	if (level_bytes > site->level_max_bytes)
		site->level_max_bytes = level_bytes;
}

static void end(struct gm_alloc_record *record, uint32_t index)
{
	struct gm_site_record *site = gm_store_record(GM_TABLE_SITES, record->site);
	struct gm_torch_record *torch = gm_known_torch(record->device);
	struct gm_counters in = {.site = site,
				 .extra = record->extra,
				 .level = gm_level_of(record->device, GM_LEVEL_TORCH)};

	if (torch && torch->counting)
		gm_torch_follow_counts(torch); /* blocks since may be work (work.h) */
	gm_site_catch_up(site);
	gm_count_free(&in, record->bytes, 1, record->flags & GM_ALLOC_BEFORE_MARK);
	in.in_level = true;
	gm_count_if_collected(&in, record);
	gm_peak_freed(record->device, GM_HOLES_TORCH, record);
	note_sampled(record->key, -1);
	gm_live_remove(record, index);
}

void gm_sample_end(uint64_t block)
{
	uint32_t index;
	struct gm_alloc_record *record =
		gm_may_be_sampled(block) ? gm_live_find(GM_SPACE_TORCH, block, &index) : NULL;

	if (record)
		end(record, index);
}
