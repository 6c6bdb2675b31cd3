/*
 * PyTorch's memory on each device.
 */
#include "track/torch_memory.h"
#include "track/capture_pools.h"
#include "track/levels.h"
#include "track/work.h"

struct gm_torch_state gm_torch_state;

void gm_torch_reset(void)
{
	gm_torch_state = (struct gm_torch_state){0};
}

bool gm_track_torch_seen(void)
{
	return __atomic_load_n(&gm_torch_state.seen, __ATOMIC_RELAXED);
}

struct gm_torch_record *gm_add_torch(int device)
{
	struct gm_torch_record **known = &gm_torch_state.devices[gm_slot(device)];
	uint32_t index;

	if (device < 0)
		return NULL;
	*known = gm_store_append(GM_TABLE_TORCH, 1, &index);
	if (!*known)
		return NULL;
	(*known)->device = (int16_t)device;
	(*known)->release_stack = GM_NONE;
	gm_file->features |= GM_FEATURE_TORCH;
	gm_store_publish(GM_TABLE_TORCH);
	return *known;
}

void gm_torch_add(struct gm_alloc_record *alloc)
{
	struct gm_torch_record *record =
		gm_torch_part(alloc) != GM_TORCH_NO_PART ? gm_torch_of(alloc->device) : NULL;

	if (record && gm_torch_reserves(gm_torch_add_driver(record, alloc, gm_torch_state.seen)))
		gm_timeline_set(alloc->device, GM_SERIES_TORCH_RESERVED, record->reserved_bytes);
	gm_capture_take(alloc);
}

void gm_torch_remove(const struct gm_alloc_record *alloc)
{
	struct gm_torch_record *record = gm_known_torch(alloc->device);

	gm_capture_give(alloc);
	if (!record || !gm_torch_reserves(gm_torch_remove_driver(record, alloc)))
		return;
	gm_peak_freed(alloc->device, GM_HOLES_TORCH, alloc);
	gm_timeline_set(alloc->device, GM_SERIES_TORCH_RESERVED, record->reserved_bytes);
}

/*
 * Finds the stack that gives back most, in bounded memory, by the majority vote of Boyer and Moore
 * with bytes as votes: a stack stays while it leads what all others gave back, so a stack with more
 * than half of all is the one that is left.
 */
static void vote(struct gm_torch_record *record, uint32_t stack, uint64_t bytes)
{
	if (stack == record->release_stack) {
		record->release_weight += bytes;
	} else if (bytes > record->release_weight) {
		record->release_stack = stack;
		record->release_weight = bytes - record->release_weight;
	} else {
		record->release_weight -= bytes;
	}
}

void gm_torch_count_release(const struct gm_alloc_record *alloc, uint32_t stack)
{
	struct gm_torch_record *record = gm_known_torch(alloc->device);

	if (!record || gm_torch_part(alloc) != GM_TORCH_SEGMENT)
		return;
	if (!record->releases++)
		record->first_release_ns = gm_track.now_ns;
	record->last_release_ns = gm_track.now_ns;
	record->releasing = 1;
	vote(record, stack, alloc->bytes);
}

void gm_torch_follow_counts(const struct gm_torch_record *torch)
{
	struct gm_level_record *level = gm_totals.levels[gm_slot(torch->device)][GM_LEVEL_TORCH];
	const struct gm_block_counts counts = gm_copy_counts(torch);

	gm_file->events += gm_level_behind(level, &counts);
	if (counts.allocations != level->allocations)
		gm_track_worked();
	gm_level_follow(level, torch, &counts);
}

void gm_torch_follow_pool(const struct gm_pool_record *pool)
{
	struct gm_torch_record *record = gm_known_torch(pool->device);

	if (!record || record->allocator != GM_TORCH_ASYNC)
		return;
	if (pool->reserved_bytes > record->reserved_bytes)
		record->reserved_total_bytes += pool->reserved_bytes - record->reserved_bytes;
	else
		record->released_total_bytes += record->reserved_bytes - pool->reserved_bytes;
	record->reserved_bytes = pool->reserved_bytes;
	if (pool->reserved_peak_bytes > record->reserved_peak_bytes)
		record->reserved_peak_bytes = pool->reserved_peak_bytes;
	gm_timeline_set(pool->device, GM_SERIES_TORCH_RESERVED, record->reserved_bytes);
}
