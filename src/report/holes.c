/*
 * Holes: which driver memory PyTorch's allocator divides into blocks (segments), what is free
 * between the blocks, and the slabs that small driver allocations share. Works on the live
 * allocations, sorted by device and address.
 */
#include "report/load.h"
#include <stdlib.h>
#include <string.h>

#define SLAB_BYTES  (2ull << 20)
#define SMALL_BYTES (1ull << 20) /* larger requests take whole pages (facts.md, granularity) */

/* A stretch of memory that is divided: a segment, or adjacent mappings of an expandable one. */
struct segment {
	uint64_t start, end;
	bool expandable;
	bool torch, custom; /* whose blocks are in it */
	uint64_t used_bytes;
};

/* What is summed up for one device and level. */
struct tally {
	struct gm_doc *doc;
	struct gm_fragmentation *row;
	struct gm_pinner *pinners; /* one per site */
	unsigned *charged;	   /* per site: the last segment it was charged for */
};

static bool is_segment(const struct gm_alloc_record *block)
{
	return block->level == GM_LEVEL_DRIVER && block->bytes > 0 &&
	       ((block->space == GM_SPACE_POINTER &&
		 (block->kind == GM_KIND_DEVICE || block->kind == GM_KIND_ASYNC)) ||
		block->space == GM_SPACE_MAPPING);
}

static bool is_torch_block(const struct gm_alloc_record *block)
{
	return block->level == GM_LEVEL_TORCH && block->space == GM_SPACE_TORCH;
}

/* PyTorch's allocator took it: the shim says so, or the stack of a shim that watched no PyTorch. */
static bool by_torch(const struct gm_doc *doc, const struct gm_alloc_record *block)
{
	const struct gm_stack *stack = block->site == GM_NONE ? NULL : doc->sites[block->site].stack;

	/* Without its cache, or with cudaMallocAsync in its place, every tensor is an allocation. */
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
static struct segment *find_segments(struct gm_doc *doc, int device, unsigned *count)
{
	struct segment *segments = NULL, *last = NULL;
	uint64_t border = 0;

	*count = 0;
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;
		bool mapping = block->space == GM_SPACE_MAPPING;
		uint64_t end;

		if (block->device == device && block->space == GM_SPACE_RESERVATION)
			border = block->key; /* comes before what is mapped at its start */
		if (block->device != device || !is_segment(block) ||
		    __builtin_add_overflow(block->key, block->bytes, &end))
			continue;
		if (last && mapping && last->expandable && last->end == block->key &&
		    block->key != border) {
			last->end = end;
			last->torch = last->torch || by_torch(doc, block);
			continue;
		}
		if (last && block->key < last->end)
			continue; /* overlapping: damage, or an address reissued just now */
		last = gm_arena_push(&doc->arena, &segments, count, sizeof(*segments));
		last->start = block->key;
		last->end = end;
		last->expandable = mapping;
		last->torch = by_torch(doc, block);
	}
	return segments;
}

static struct segment *segment_at(struct segment *segments, unsigned count, uint64_t address)
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

static void tally_hole(struct tally *tally, const struct segment *segment, uint64_t bytes)
{
	if (bytes > tally->row->largest_free_bytes || tally->row->largest_free_bytes == GM_NO_BYTES)
		tally->row->largest_free_bytes = bytes;
	if (segment->used_bytes && !segment->expandable)
		tally->row->split_bytes += bytes;
}

/* Charges a segment's free bytes to the sites whose blocks keep it from being given back, once
 * each. */
static void pin(struct tally *tally, const struct segment *segment, unsigned first, unsigned last)
{
	uint64_t free_bytes = segment->end - segment->start - segment->used_bytes;

	for (unsigned i = first; free_bytes && i < last; i++) {
		const struct gm_alloc_record *block = &tally->doc->blocks[i].record;
		struct gm_pinner *pinner;

		if (!is_torch_block(block) || block->site == GM_NONE)
			continue;
		pinner = &tally->pinners[block->site];
		pinner->site = block->site;
		pinner->blocks++;
		pinner->bytes += block->bytes;
		if (tally->charged[block->site] != tally->row->segments)
			pinner->hole_bytes += free_bytes;
		tally->charged[block->site] = tally->row->segments;
	}
}

/* Walks the blocks of one segment: its holes and who pins it. `first` is the first that can lie in
 * it. */
static void walk_segment(struct tally *tally, struct segment *segment, unsigned first)
{
	const struct gm_doc *doc = tally->doc;
	uint64_t at = segment->start;
	unsigned i;

	for (i = first; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;

		if (block->device != tally->row->device || block->key >= segment->end)
			break;
		if (!is_torch_block(block) || block->key < at)
			continue;
		if (block->key > at)
			tally_hole(tally, segment, block->key - at);
		at = block->bytes > segment->end - block->key ? segment->end
							      : block->key + block->bytes;
	}
	if (at < segment->end)
		tally_hole(tally, segment, segment->end - at);
	if (!segment->used_bytes)
		tally->row->releasable_bytes += segment->end - segment->start;
	pin(tally, segment, first, i);
}

/* First block of a device at or after an address. */
static unsigned first_block(const struct gm_doc *doc, int device, uint64_t address)
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
static void use_segments(struct gm_doc *doc, int device, struct segment *segments, unsigned count)
{
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;
		struct segment *segment;
		uint64_t room;

		if (block->device != device || block->level == GM_LEVEL_DRIVER)
			continue;
		segment = segment_at(segments, count, block->key);
		if (!segment)
			continue;
		segment->custom = segment->custom || block->level == GM_LEVEL_CUSTOM;
		if (!is_torch_block(block))
			continue;
		room = segment->end - block->key;
		segment->torch = true;
		segment->used_bytes += block->bytes < room ? block->bytes : room;
		if (segment->used_bytes > segment->end - segment->start)
			segment->used_bytes = segment->end - segment->start;
	}
}

static int compare_pinners(const void *a, const void *b)
{
	const struct gm_pinner *x = a, *y = b;

	if (x->hole_bytes != y->hole_bytes)
		return x->hole_bytes < y->hole_bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static void keep_pinners(struct tally *tally)
{
	struct gm_fragmentation *row = tally->row;
	unsigned n = 0;

	for (unsigned i = 0; i < tally->doc->sites_count; i++)
		if (tally->pinners[i].hole_bytes)
			tally->pinners[n++] = tally->pinners[i];
	if (n)
		qsort(tally->pinners, n, sizeof(*tally->pinners), compare_pinners);
	row->pinners_count = n < GM_PINNERS ? n : GM_PINNERS;
	row->pinners =
		gm_arena_alloc(&tally->doc->arena, row->pinners_count, sizeof(*row->pinners));
	memcpy(row->pinners, tally->pinners, row->pinners_count * sizeof(*row->pinners));
}

static struct gm_fragmentation *new_row(struct gm_doc *doc, int device, const char *level)
{
	struct gm_fragmentation *row = gm_arena_push(&doc->arena, &doc->fragmentation,
						     &doc->fragmentation_count, sizeof(*row));

	row->device = device;
	row->level = level;
	row->largest_free_bytes = GM_NO_BYTES;
	return row;
}

/* The sites whose memory a pool divides into blocks: their verdict is `cached`. */
static void mark_divided_sites(struct gm_doc *doc, int device, struct segment *segments,
			       unsigned count)
{
	bool mapped = false;

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;
		struct segment *segment;

		if (block->device != device || !is_segment(block))
			continue;
		segment = segment_at(segments, count, block->key);
		if (!segment || !(segment->torch || segment->custom))
			continue;
		mapped = mapped || (segment->torch && block->space == GM_SPACE_MAPPING);
		if (block->site == GM_NONE)
			continue;
		if (segment->torch)
			doc->sites[block->site].torch_segments = true;
		doc->sites[block->site].divided = true;
	}
	/* The memory behind mappings belongs to the handles' sites. */
	for (unsigned i = 0; mapped && i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;

		if (block->device == device && block->space == GM_SPACE_HANDLE &&
		    block->site != GM_NONE && by_torch(doc, block))
			doc->sites[block->site].torch_segments = doc->sites[block->site].divided =
				true;
	}
}

/* Segments and what pins them; without blocks of a framework nothing comes of it. */
static void torch_level(struct gm_doc *doc, int device)
{
	struct tally tally = {.doc = doc};
	unsigned count;
	struct segment *segments = find_segments(doc, device, &count);

	use_segments(doc, device, segments, count);
	mark_divided_sites(doc, device, segments, count);
	for (unsigned i = 0; i < count; i++) {
		if (!segments[i].torch)
			continue;
		if (!tally.row) {
			tally.row = new_row(doc, device, "torch");
			tally.pinners = calloc(doc->sites_count + 1, sizeof(*tally.pinners));
			tally.charged = calloc(doc->sites_count + 1, sizeof(*tally.charged));
			if (!tally.pinners || !tally.charged)
				break;
		}
		tally.row->segments++;
		tally.row->reserved_bytes += segments[i].end - segments[i].start;
		tally.row->used_bytes += segments[i].used_bytes;
		walk_segment(&tally, &segments[i], first_block(doc, device, segments[i].start));
	}
	if (tally.pinners && tally.charged)
		keep_pinners(&tally);
	free(tally.pinners);
	free(tally.charged);
}

static void pool_level(struct gm_doc *doc, int device)
{
	struct gm_fragmentation *row = NULL;

	for (unsigned i = 0; i < doc->pools_count; i++) {
		const struct gm_pool_record *pool = &doc->pools[i];

		if (pool->device != device || pool->reserved_bytes == GM_NO_BYTES ||
		    pool->used_bytes == GM_NO_BYTES || !pool->reserved_bytes)
			continue;
		if (!row)
			row = new_row(doc, device, "pool");
		row->segments++;
		row->reserved_bytes += pool->reserved_bytes;
		row->used_bytes += pool->used_bytes;
	}
}

/* Requests of at most 1 MiB share slabs of 2 MiB: one live allocation keeps a whole slab. */
static void slab_level(struct gm_doc *doc, int device)
{
	struct gm_fragmentation *row = NULL;
	uint64_t slab = 0, at = 0, hole;

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;
		uint64_t bytes = (block->bytes + 511) & ~511ull;

		if (block->device != device || block->level != GM_LEVEL_DRIVER ||
		    block->space != GM_SPACE_POINTER || block->kind != GM_KIND_DEVICE ||
		    block->bytes == 0 || block->bytes > SMALL_BYTES)
			continue;
		if (!row) {
			row = new_row(doc, device, "slab");
			row->largest_free_bytes = 0;
		}
		if (row->segments == 0 || block->key >= slab + SLAB_BYTES) {
			hole = row->segments ? slab + SLAB_BYTES - at : 0;
			if (hole > row->largest_free_bytes)
				row->largest_free_bytes = hole;
			slab = at = block->key & ~(SLAB_BYTES - 1);
			row->segments++;
			row->reserved_bytes += SLAB_BYTES;
		}
		if (block->key > at && block->key - at > row->largest_free_bytes)
			row->largest_free_bytes = block->key - at;
		if (block->key + bytes > slab + SLAB_BYTES)
			bytes = slab + SLAB_BYTES - block->key;
		row->used_bytes += bytes;
		at = block->key + bytes;
	}
	hole = row ? slab + SLAB_BYTES - at : 0;
	if (row && hole > row->largest_free_bytes)
		row->largest_free_bytes = hole;
	if (row && row->used_bytes > row->reserved_bytes)
		row->used_bytes = row->reserved_bytes;
}

void gm_load_fragmentation(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->levels_count; i++) {
		int device = doc->levels[i].device;

		if (device < 0 || (i && doc->levels[i - 1].device == device))
			continue;
		torch_level(doc, device);
		pool_level(doc, device);
		slab_level(doc, device);
	}
}
