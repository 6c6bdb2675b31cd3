/*
 * The allocator's state as sets of ranges (replay_sets.h). The rules are those of PyTorch's
 * CUDACachingAllocator: sizes are rounded up to 512 bytes; what remains of a free block is split
 * off when it is at least 512 bytes in the small pool and in expandable segments, else more than 1
 * MiB.
 */
#include "report/import/replay_sets.h"
#include "account/hole_walk.h"
#include "account/sizes.h"
#include "account/torch_record.h"
#include <stdlib.h>
#include <string.h>

uint64_t gm_sets_new(struct gm_sets *sets, uint32_t stack, uint64_t stream, bool expandable)
{
	if (sets->lives_count == sets->lives_room) {
		sets->lives_room = sets->lives_room ? 2 * sets->lives_room : 256;
		sets->lives = gm_realloc(sets->lives, sets->lives_room * sizeof(*sets->lives));
	}
	sets->lives[sets->lives_count] = (struct gm_replayed_allocation){
		.stack = stack, .site = GM_NONE, .stream = stream, .expandable = expandable};
	return sets->lives_count++;
}

static void load_blocks(struct gm_sets *sets, const struct gm_snapshot_segment *segment)
{
	for (unsigned i = 0; i < segment->blocks_count; i++) {
		const struct gm_snapshot_block *block = &segment->blocks[i];
		uint64_t tag;

		if (block->state == GM_BLOCK_INACTIVE)
			continue;
		tag = gm_sets_new(sets, block->stack, segment->stream, false);
		sets->lives[tag].pending = block->state == GM_BLOCK_PENDING;
		gm_ranges_add(&sets->blocks, block->start, block->start + block->bytes, tag);
	}
}

static uint64_t max_split(const struct gm_snapshot *snapshot)
{
	return gm_value_number(snapshot->settings, "max_split_size", UINT64_MAX);
}

void gm_sets_load(struct gm_sets *sets, const struct gm_snapshot *snapshot, int device)
{
	memset(sets, 0, sizeof(*sets));
	sets->snapshot = snapshot;
	sets->device = device;
	sets->max_split_bytes = max_split(snapshot);
	for (unsigned i = 0; i < snapshot->segments_count; i++) {
		const struct gm_snapshot_segment *segment = &snapshot->segments[i];
		uint64_t tag;

		if (segment->device != device)
			continue;
		tag = gm_sets_new(sets, segment->stack, segment->stream, segment->expandable);
		sets->lives[tag].left_bytes = segment->bytes;
		if (gm_ranges_add(&sets->segments, segment->start, segment->start + segment->bytes,
				  tag))
			load_blocks(sets, segment);
	}
}

void gm_sets_free(struct gm_sets *sets)
{
	gm_ranges_free(&sets->segments);
	gm_ranges_free(&sets->blocks);
	free(sets->lives);
}

static uint64_t rounded(uint64_t requested)
{
	return requested < GM_TORCH_MIN_BLOCK_BYTES
		       ? GM_TORCH_MIN_BLOCK_BYTES
		       : gm_round_up(requested, GM_TORCH_MIN_BLOCK_BYTES);
}

/* Takes out mappings from `start` to `end`, whatever calls made them. */
static bool unmap(struct gm_sets *sets, uint64_t start, uint64_t end)
{
	struct gm_tagged_range cut;

	while (start < end) {
		if (!gm_ranges_cut(&sets->segments, start, end, &cut))
			return false;
		sets->lives[cut.tag].left_bytes -= cut.end - cut.start;
		start = cut.end;
	}
	return true;
}

/* Memory that was there before an event took it away; whose it was is not known. */
static bool put_back(struct gm_sets *sets, struct gm_ranges *set,
		     const struct gm_snapshot_event *event, uint64_t bytes, bool expandable)
{
	uint64_t tag = gm_sets_new(sets, GM_NONE, event->stream, expandable);

	sets->lives[tag].left_bytes = bytes;
	return gm_ranges_add(set, event->start, event->start + bytes, tag);
}

bool gm_sets_undo(struct gm_sets *sets, const struct gm_snapshot_event *event)
{
	struct gm_tagged_range *block = gm_ranges_find(&sets->blocks, event->start);

	switch (event->action) {
	case GM_ACTION_ALLOC:
		return gm_ranges_remove(&sets->blocks, event->start);
	case GM_ACTION_FREE_COMPLETED:
		if (!put_back(sets, &sets->blocks, event, rounded(event->bytes), false))
			return false;
		sets->lives[sets->lives_count - 1].pending = true;
		return true;
	case GM_ACTION_FREE_REQUESTED:
		if (block)
			sets->lives[block->tag].pending = false;
		return block != NULL;
	case GM_ACTION_SEGMENT_ALLOC:
		return gm_ranges_remove(&sets->segments, event->start);
	case GM_ACTION_SEGMENT_FREE:
		return put_back(sets, &sets->segments, event, event->bytes, false);
	case GM_ACTION_SEGMENT_MAP:
		return unmap(sets, event->start, event->start + event->bytes);
	case GM_ACTION_SEGMENT_UNMAP:
		return put_back(sets, &sets->segments, event, event->bytes, true);
	default:
		return true;
	}
}

/*
 * Returns the end of the segment that holds range `at`: mappings of an expandable one follow each
 * other.
 */
static uint64_t segment_end(const struct gm_sets *sets, unsigned at)
{
	const struct gm_tagged_range *ranges = sets->segments.ranges;
	bool expandable = sets->lives[ranges[at].tag].expandable;

	while (expandable && at + 1 < sets->segments.count &&
	       ranges[at + 1].start == ranges[at].end && sets->lives[ranges[at + 1].tag].expandable)
		at++;
	return ranges[at].end;
}

uint64_t gm_sets_block_bytes(const struct gm_sets *sets, uint64_t start, uint64_t requested)
{
	unsigned at = gm_ranges_at(&sets->segments, start),
		 next = gm_ranges_at(&sets->blocks, start);
	uint64_t bytes = rounded(requested), end, rest;
	const struct gm_tagged_range *segment;
	bool fine;

	if (at == sets->segments.count || sets->segments.ranges[at].start > start)
		return 0;
	segment = &sets->segments.ranges[at];
	end = segment_end(sets, at);
	if (next < sets->blocks.count && sets->blocks.ranges[next].start < end)
		end = sets->blocks.ranges[next].start;
	if (end <= start || end - start < bytes)
		return 0;
	rest = end - start - bytes;
	fine = sets->lives[segment->tag].expandable ||
	       segment->end - segment->start == GM_TORCH_SMALL_SEGMENT_BYTES;
	if (fine ? rest >= GM_TORCH_MIN_BLOCK_BYTES
		 : rest > GM_TORCH_SMALL_BYTES && bytes < sets->max_split_bytes)
		return bytes;
	return end - start;
}

/* True if the blocks of a segment are those of the snapshot; `*seen` counts them. */
static bool same_blocks(const struct gm_sets *sets, const struct gm_snapshot_segment *segment,
			unsigned *seen)
{
	for (unsigned i = 0; i < segment->blocks_count; i++) {
		const struct gm_snapshot_block *block = &segment->blocks[i];
		struct gm_tagged_range *found;

		if (block->state == GM_BLOCK_INACTIVE)
			continue;
		found = gm_ranges_find((struct gm_ranges *)&sets->blocks, block->start);
		if (!found || found->end != block->start + block->bytes ||
		    sets->lives[found->tag].pending != (block->state == GM_BLOCK_PENDING))
			return false;
		++*seen;
	}
	return true;
}

bool gm_sets_final(const struct gm_sets *sets)
{
	uint64_t bytes = 0, ours = 0;
	unsigned blocks = 0;

	for (unsigned i = 0; i < sets->snapshot->segments_count; i++) {
		const struct gm_snapshot_segment *segment = &sets->snapshot->segments[i];
		unsigned at = gm_ranges_at(&sets->segments, segment->start);

		if (segment->device != sets->device)
			continue;
		if (at == sets->segments.count ||
		    sets->segments.ranges[at].start > segment->start ||
		    segment_end(sets, at) < segment->start + segment->bytes ||
		    !same_blocks(sets, segment, &blocks))
			return false;
		bytes += segment->bytes;
	}
	for (unsigned i = 0; i < sets->segments.count; i++)
		ours += sets->segments.ranges[i].end - sets->segments.ranges[i].start;
	return blocks == sets->blocks.count && bytes == ours;
}

static void add_extents(const struct gm_sets *sets, const struct gm_ranges *ranges,
			struct gm_extent *extents)
{
	bool blocks = ranges == &sets->blocks;

	for (unsigned i = 0; i < ranges->count; i++)
		extents[i] = (struct gm_extent){
			.start = ranges->ranges[i].start,
			.end = ranges->ranges[i].end,
			.site = GM_NONE,
			.role = blocks						? GM_EXTENT_BLOCK
				: sets->lives[ranges->ranges[i].tag].expandable ? GM_EXTENT_MAPPING
										: GM_EXTENT_SEGMENT,
			.owned = !blocks,
		};
}

uint64_t gm_sets_largest_hole(const struct gm_sets *sets)
{
	unsigned count = sets->segments.count + sets->blocks.count;
	struct gm_extent *extents;
	struct gm_holes holes;

	if (!sets->segments.count)
		return GM_NO_BYTES;
	extents = gm_realloc(NULL, count * sizeof(*extents));
	add_extents(sets, &sets->segments, extents);
	add_extents(sets, &sets->blocks, extents + sets->segments.count);
	gm_extents_sort(extents, count);
	holes = gm_holes_of(extents, count, NULL);
	free(extents);
	return holes.largest_bytes;
}

static uint64_t bytes_within(const struct gm_ranges *ranges, uint64_t start, uint64_t end)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < ranges->count; i++) {
		uint64_t from = ranges->ranges[i].start, to = ranges->ranges[i].end;

		from = from > start ? from : start;
		to = to < end ? to : end;
		bytes += to > from ? to - from : 0;
	}
	return bytes;
}

uint64_t gm_sets_private_idle(const struct gm_sets *sets)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < sets->snapshot->segments_count; i++) {
		const struct gm_snapshot_segment *segment = &sets->snapshot->segments[i];
		uint64_t end = segment->start + segment->bytes;

		if (segment->pool && segment->device == sets->device)
			bytes += bytes_within(&sets->segments, segment->start, end) -
				 bytes_within(&sets->blocks, segment->start, end);
	}
	return bytes;
}
