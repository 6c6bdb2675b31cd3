/*
 * Segments: driver memory of a device as the address ranges that an allocator divides, and which
 * blocks lie in them. See segments.h.
 */
#include "report/holes/segments.h"
#include <string.h>

bool gm_is_segment(const struct gm_alloc_record *block)
{
	return block->level == GM_LEVEL_DRIVER && block->bytes > 0 &&
	       ((block->space == GM_SPACE_POINTER &&
		 (block->kind == GM_KIND_DEVICE || block->kind == GM_KIND_ASYNC)) ||
		block->space == GM_SPACE_MAPPING);
}

bool gm_is_torch_block(const struct gm_alloc_record *block)
{
	return block->level == GM_LEVEL_TORCH && block->space == GM_SPACE_TORCH;
}

/* PyTorch's allocator took it: the shim says so, or the stack of a shim that watched no PyTorch. */
bool gm_by_torch(const struct gm_doc *doc, const struct gm_alloc_record *block)
{
	const struct gm_stack *stack =
		block->site == GM_NONE ? NULL : doc->sites[block->site].stack;

	/* Without its cache, or with cudaMallocAsync in its place, every tensor is an allocation.
	 */
	if (doc->uncached_torch || block->kind == GM_KIND_ASYNC)
		return false;
	if (block->flags & GM_ALLOC_TORCH)
		return true;
	for (unsigned i = 0; stack && i < stack->count; i++) {
		const char *module = stack->frames[i].module;
		const char *slash = module ? strrchr(module, '/') : NULL;

		if (module && strncmp(slash ? slash + 1 : module, "libc10_cuda", 11) == 0)
			return true;
	}
	return false;
}

/* The segments of a device, in order of address; adjacent mappings of one site's kind are one. */
static struct gm_segment *find_segments(struct gm_doc *doc, int device, unsigned *count)
{
	struct gm_segment *segments = NULL, *last = NULL;
	uint64_t border = 0;

	*count = 0;
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;
		bool mapping = block->space == GM_SPACE_MAPPING;
		uint64_t end;

		if (block->device == device && block->space == GM_SPACE_RESERVATION)
			border = block->key; /* comes before what is mapped at its start */
		if (block->device != device || !gm_is_segment(block) ||
		    __builtin_add_overflow(block->key, block->bytes, &end))
			continue;
		if (last && mapping && last->expandable && last->end == block->key &&
		    block->key != border) {
			last->end = end;
			last->torch = last->torch || gm_by_torch(doc, block);
			continue;
		}
		if (last && block->key < last->end)
			continue; /* overlapping: damage, or an address reissued just now */
		last = gm_zone_push(&doc->zone, &segments, count, sizeof(*segments));
		last->start = block->key;
		last->end = end;
		last->expandable = mapping;
		last->torch = gm_by_torch(doc, block);
	}
	return segments;
}

struct gm_segment *gm_segment_at(struct gm_segment *segments, unsigned count, uint64_t address)
{
	unsigned low = 0, high = count;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (segments[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && segments[low].start <= address ? &segments[low] : NULL;
}

/* First block of a device at or after an address. */
unsigned gm_first_block(const struct gm_doc *doc, int device, uint64_t address)
{
	unsigned low = 0, high = doc->blocks_count;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;
		const struct gm_alloc_record *block = &doc->blocks[middle].record;

		if (block->device < device || (block->device == device && block->key < address))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Which segments hold blocks, and how much of each is used. */
static void use_segments(struct gm_doc *doc, int device, struct gm_segment *segments,
			 unsigned count)
{
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;
		struct gm_segment *segment;
		uint64_t room;

		if (block->device != device || block->level == GM_LEVEL_DRIVER)
			continue;
		segment = gm_segment_at(segments, count, block->key);
		if (!segment)
			continue;
		segment->custom = segment->custom || block->level == GM_LEVEL_CUSTOM;
		if (!gm_is_torch_block(block))
			continue;
		room = segment->end - block->key;
		segment->torch = true;
		segment->used_bytes += block->bytes < room ? block->bytes : room;
		if (segment->used_bytes > segment->end - segment->start)
			segment->used_bytes = segment->end - segment->start;
	}
}

struct gm_segment *gm_find_segments(struct gm_doc *doc, int device, unsigned *count)
{
	struct gm_segment *segments = find_segments(doc, device, count);

	use_segments(doc, device, segments, *count);
	return segments;
}
