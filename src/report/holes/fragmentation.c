/*
 * The rows of `fragmentation[]`: each device's levels, now and at the peak. See fragmentation.h.
 */
#include "account/kinds.h"
#include "report/holes/fragmentation.h"
#include "report/holes/holes.h"
#include "report/holes/holes_then.h"
#include "report/holes/segments.h"

/* What reserves nothing now, and never did, has no row. */
static void add_row(struct gm_doc *doc, struct gm_fragmentation *row)
{
	row->peak = gm_holes_at_peak(doc, row);
	if (row->segments || row->peak)
		*(struct gm_fragmentation *)gm_zone_push(&doc->zone, &doc->fragmentation,
							 &doc->fragmentation_count, sizeof(*row)) =
			*row;
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
static void laid_out_level(struct gm_doc *doc, int device, enum gm_holes_level level)
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
	add_row(doc, &row);
}

static void pool_level(struct gm_doc *doc, int device)
{
	struct gm_fragmentation row;

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
	add_row(doc, &row);
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
	}
}
