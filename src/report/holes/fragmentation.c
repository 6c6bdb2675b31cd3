/*
 * The rows of `fragmentation[]`: each device's levels, now and at the peak. See fragmentation.h.
 */
#include "account/kinds.h"
#include "report/holes/fragmentation.h"
#include "report/holes/holes.h"
#include "report/holes/holes_then.h"
#include "report/holes/segments.h"
#include <stdlib.h>

/* A level that reserves nothing now, and never did, has no row. */
static void add_row(struct gm_doc *doc, struct gm_fragmentation *row,
		    const struct gm_fragmentation *work)
{
	row->peak = gm_holes_at_peak(doc, row);
	if (doc->freed_blocks_count) {
		struct gm_fragmentation *kept = gm_zone_alloc(&doc->zone, 1, sizeof(*kept));

		*kept = *work;
		row->work = kept;
	}
	if (row->segments || row->peak || work->segments)
		*(struct gm_fragmentation *)gm_zone_push(&doc->zone, &doc->fragmentation,
							 &doc->fragmentation_count, sizeof(*row)) =
			*row;
}

/* The sites whose memory a pool divides into blocks: their verdict is `cached`. */
static void mark_divided_sites(struct gm_doc *doc, unsigned blocks, int device,
			       struct gm_segment *segments, unsigned count)
{
	bool mapped = false;

	for (unsigned i = 0; i < blocks; i++) {
		const struct gm_alloc_record copy = gm_work_block(doc, i), *block = &copy;
		struct gm_segment *segment;

		if (block->device != device || !gm_is_divisible(block))
			continue;
		segment = gm_segment_at(segments, count, block->key);
		if (!segment || !(segment->owned || segment->pooled))
			continue;
		mapped = mapped || (segment->owned && block->space == GM_SPACE_MAPPING);
		if (block->site == GM_NONE)
			continue;
		if (segment->owned)
			doc->sites[block->site].torch_segments = true;
		doc->sites[block->site].divided = true;
	}
	/* The memory behind mappings belongs to the handles' sites. */
	for (unsigned i = 0; mapped && i < blocks; i++) {
		const struct gm_alloc_record copy = gm_work_block(doc, i), *block = &copy;

		if (block->device == device && block->space == GM_SPACE_HANDLE &&
		    block->site != GM_NONE && gm_by_torch(doc, block))
			doc->sites[block->site].torch_segments = doc->sites[block->site].divided =
				true;
	}
}

/* PyTorch's segments or the driver's slabs, by the first `blocks` of what was live. */
static struct gm_fragmentation lay_out(struct gm_doc *doc, unsigned blocks, int device,
				       enum gm_holes_level level)
{
	struct gm_extents extents = gm_extents_first(doc, blocks, device, level);
	struct gm_fragmentation row;
	unsigned count;

	if (level == GM_HOLES_TORCH) {
		struct gm_segment *segments = gm_find_segments(&extents, &count);

		mark_divided_sites(doc, blocks, device, segments, count);
		free(segments);
	}
	gm_holes_begin(&row, device, level);
	gm_holes_fill(doc, &extents, level, &row);
	gm_extents_free(&extents);
	return row;
}

static bool has_segments(const struct gm_doc *doc, int device, enum gm_holes_level level)
{
	for (unsigned i = 0; i < gm_work_blocks(doc); i++) {
		const struct gm_alloc_record block = gm_work_block(doc, i);

		if (block.device == device && gm_extents_count(doc, &block, level))
			return true;
	}
	return false;
}

static bool changed_after_work(const struct gm_doc *doc, int device, enum gm_holes_level level)
{
	struct gm_extent of[2];

	for (unsigned i = doc->blocks_count; i < gm_work_blocks(doc); i++) {
		const struct gm_alloc_record block = gm_work_block(doc, i);

		if (block.device == device && gm_extents_of(&block, level, of))
			return true;
	}
	return false;
}

/* Most programs have nothing at most levels: that costs one look at each block, and no memory. */
static void laid_out_level(struct gm_doc *doc, int device, enum gm_holes_level level)
{
	struct gm_fragmentation row, work;

	gm_holes_begin(&row, device, level);
	work = row;
	if (has_segments(doc, device, level)) {
		row = lay_out(doc, doc->blocks_count, device, level);
		work = changed_after_work(doc, device, level)
			       ? lay_out(doc, gm_work_blocks(doc), device, level)
			       : row;
	}
	/* The blocks that are not sampled would be taken for holes. */
	if (level != GM_HOLES_TORCH || !doc->header->sample_bytes)
		add_row(doc, &row, &work);
}

/* Bytes that were in use in the device's pools at the end of the work and are not now. */
static uint64_t pools_freed_after(const struct gm_doc *doc, int device)
{
	uint64_t bytes = 0;

	for (unsigned i = doc->blocks_count; i < gm_work_blocks(doc); i++) {
		const struct gm_alloc_record block = gm_work_block(doc, i);

		if (block.device == device && block.kind == GM_KIND_ASYNC)
			bytes += block.bytes;
	}
	return bytes;
}

/* A pool's figures are those of its last sample: of the end of the work what is in use is known. */
static void pool_level(struct gm_doc *doc, int device)
{
	struct gm_fragmentation row, work;

	gm_holes_begin(&row, device, GM_HOLES_POOL);
	for (unsigned i = 0; i < doc->pools_count; i++) {
		const struct gm_pool_record *pool = &doc->pools[i];

		if (pool->device != device || pool->reserved_bytes == GM_NO_BYTES ||
		    pool->used_bytes == GM_NO_BYTES || !pool->reserved_bytes)
			continue;
		row.segments++;
		row.reserved_bytes += pool->reserved_bytes;
		row.used_bytes += pool->used_bytes;
	}
	work = row;
	work.used_bytes += pools_freed_after(doc, device);
	if (work.used_bytes > work.reserved_bytes)
		work.used_bytes = work.reserved_bytes;
	add_row(doc, &row, &work);
}

static bool has_custom_blocks(const struct gm_doc *doc, int device)
{
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].device == device && doc->levels[i].level == GM_LEVEL_CUSTOM)
			return true;
	return false;
}

void gm_load_fragmentation(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->levels_count; i++) {
		int device = doc->levels[i].device;

		if (device < 0 || (i && doc->levels[i - 1].device == device))
			continue;
		laid_out_level(doc, device, GM_HOLES_TORCH);
		pool_level(doc, device);
		laid_out_level(doc, device, GM_HOLES_SLAB);
		if (has_custom_blocks(doc, device))
			laid_out_level(doc, device, GM_HOLES_CUSTOM);
	}
}
