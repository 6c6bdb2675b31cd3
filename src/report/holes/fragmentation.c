/*
 * The rows of `fragmentation[]`: each device's levels, now and at the peak. See fragmentation.h.
 */
#include "account/kinds.h"
#include "report/holes/fragmentation.h"
#include "report/holes/holes.h"
#include "report/holes/holes_then.h"
#include "report/holes/segments.h"

/* What reserves nothing now, and never did, has no row. */
static void add_row(struct gm_doc *doc, struct gm_fragmentation *row,
		    const struct gm_fragmentation *work)
{
	row->peak = gm_holes_at_peak(doc, row);
	if (doc->work_blocks != doc->blocks) {
		struct gm_fragmentation *kept = gm_zone_alloc(&doc->zone, 1, sizeof(*kept));

		*kept = *work;
		row->work = kept;
	}
	if (row->segments || row->peak || work->segments)
		*(struct gm_fragmentation *)gm_zone_push(&doc->zone, &doc->fragmentation,
							 &doc->fragmentation_count, sizeof(*row)) =
			*row;
}

/* The document's blocks are those of the end of the work until this is called again. */
static void exchange_blocks(struct gm_doc *doc)
{
	struct gm_block *blocks = doc->blocks;
	unsigned count = doc->blocks_count;

	doc->blocks = doc->work_blocks;
	doc->blocks_count = doc->work_blocks_count;
	doc->work_blocks = blocks;
	doc->work_blocks_count = count;
}

/* The sites whose memory a pool divides into blocks: their verdict is `cached`. */
static void mark_divided_sites(struct gm_doc *doc, int device, struct gm_segment *segments,
			       unsigned count)
{
	bool mapped = false;

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;
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
	for (unsigned i = 0; mapped && i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;

		if (block->device == device && block->space == GM_SPACE_HANDLE &&
		    block->site != GM_NONE && gm_by_torch(doc, block))
			doc->sites[block->site].torch_segments = doc->sites[block->site].divided =
				true;
	}
}

/* PyTorch's segments or the driver's slabs, by what is live. */
static struct gm_fragmentation lay_out(struct gm_doc *doc, int device, enum gm_holes_level level)
{
	struct gm_extents extents = gm_extents_now(doc, device, level);
	struct gm_fragmentation row;
	unsigned count;

	if (level == GM_HOLES_TORCH) {
		struct gm_segment *segments = gm_find_segments(doc, &extents, &count);

		mark_divided_sites(doc, device, segments, count);
	}
	gm_holes_begin(&row, device, level);
	gm_holes_fill(doc, &extents, level, &row);
	gm_extents_free(&extents);
	return row;
}

static void laid_out_level(struct gm_doc *doc, int device, enum gm_holes_level level)
{
	struct gm_fragmentation row, work;

	exchange_blocks(doc);
	work = lay_out(doc, device, level);
	exchange_blocks(doc);
	row = lay_out(doc, device, level);
	add_row(doc, &row, &work);
}

/* Bytes that were in use in the device's pools at the end of the work and are not now. */
static uint64_t pools_freed_after(const struct gm_doc *doc, int device)
{
	uint64_t before = 0, now = 0;

	for (unsigned i = 0; i < doc->work_blocks_count; i++)
		if (doc->work_blocks[i].record.device == device &&
		    doc->work_blocks[i].record.kind == GM_KIND_ASYNC)
			before += doc->work_blocks[i].record.bytes;
	for (unsigned i = 0; i < doc->blocks_count; i++)
		if (doc->blocks[i].record.device == device &&
		    doc->blocks[i].record.kind == GM_KIND_ASYNC)
			now += doc->blocks[i].record.bytes;
	return before - now;
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
