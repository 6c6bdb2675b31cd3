/*
 * Holes at the peak and at an out-of-memory event. The sums were noted by the shim at that moment.
 * For the layout the blocks of then are put in the place of those of now; where they do not add up
 * to the sums (the file is cut, more was freed than could be kept), the largest hole is not known.
 */
#include "report/holes/holes_then.h"
#include "report/holes/holes.h"
#include <string.h>

/* Takes over what the extents show beyond the sums, if they show all of these. Frees the extents.
 */
static void lay_out(struct gm_doc *doc, struct gm_extents *extents, enum gm_holes_level level,
		    struct gm_fragmentation *row)
{
	struct gm_fragmentation shown;

	gm_extents_sort(extents->list, extents->count);
	gm_holes_begin(&shown, row->device, level);
	gm_holes_fill(doc, extents, level, &shown);
	gm_extents_free(extents);
	if (shown.reserved_bytes != row->reserved_bytes || shown.used_bytes != row->used_bytes)
		return;
	shown.time_ns = row->time_ns;
	*row = shown;
}

/* ---- the peak ---- */

static bool find_peak(const struct gm_doc *doc, int device, enum gm_holes_level level,
		      struct gm_peak_record *peak)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_PEAKS);

	for (uint32_t i = 0; i < records; i++)
		if (gm_reader_get(doc->reader, GM_TABLE_PEAKS, i, peak, sizeof(*peak)) &&
		    peak->device == device && peak->level == level)
			return peak->used_bytes && peak->used_bytes <= peak->reserved_bytes;
	return false;
}

/* Adds the memory that was freed since, as the allocation that it was. */
static void add_freed(const struct gm_doc *doc, const struct gm_peak_record *peak,
		      struct gm_extents *extents)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_PEAK_BLOCKS);

	for (uint32_t i = 0; i < records; i++) {
		struct gm_peak_block_record freed;
		struct gm_alloc_record record = {0};
		bool block;

		if (!gm_reader_get(doc->reader, GM_TABLE_PEAK_BLOCKS, i, &freed, sizeof(freed)) ||
		    freed.peak_serial != peak->serial || freed.device != peak->device ||
		    freed.level != peak->level || freed.bytes > UINT64_MAX - freed.address)
			continue;
		block = freed.space == GM_SPACE_TORCH;
		record.key = freed.address;
		record.bytes = freed.bytes;
		record.site = freed.site < doc->sites_count ? freed.site : GM_NONE;
		record.space = freed.space;
		record.device = freed.device;
		record.level = block ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER;
		record.kind =
			block || freed.space == GM_SPACE_POINTER ? GM_KIND_DEVICE : GM_KIND_NONE;
		record.flags = !block && peak->level == GM_HOLES_TORCH ? GM_ALLOC_TORCH : 0;
		gm_extents_add(extents, doc, &record, peak->level, 0);
	}
}

static struct gm_extents extents_of_peak(const struct gm_doc *doc,
					 const struct gm_peak_record *peak)
{
	struct gm_extents extents = {0};

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *record = &copy;

		if (record->device == peak->device && record->serial <= peak->serial)
			gm_extents_add(&extents, doc, record, peak->level, 0);
	}
	add_freed(doc, peak, &extents);
	return extents;
}

static enum gm_holes_level level_number(const char *name)
{
	return strcmp(name, "torch") == 0  ? GM_HOLES_TORCH
	       : strcmp(name, "pool") == 0 ? GM_HOLES_POOL
	       : strcmp(name, "slab") == 0 ? GM_HOLES_SLAB
					   : GM_HOLES_CUSTOM;
}

const struct gm_fragmentation *gm_holes_at_peak(struct gm_doc *doc,
						const struct gm_fragmentation *now)
{
	enum gm_holes_level level = level_number(now->level);
	struct gm_fragmentation *row;
	struct gm_peak_record peak;
	struct gm_extents extents;

	if (doc->at_ns != GM_NO_BYTES || !find_peak(doc, now->device, level, &peak))
		return NULL;
	row = gm_zone_alloc(&doc->zone, 1, sizeof(*row));
	gm_holes_begin(row, now->device, level);
	row->time_ns = peak.time_ns;
	row->reserved_bytes = peak.reserved_bytes;
	row->used_bytes = peak.used_bytes;
	if (level != GM_HOLES_POOL && !peak.lost) {
		extents = extents_of_peak(doc, &peak);
		lay_out(doc, &extents, level, row);
	}
	return row;
}

/* ---- an out-of-memory event ---- */

/* The copies that the shim made of what was live then, as the allocations that they were. */
static struct gm_extents extents_of_oom(const struct gm_doc *doc, const struct gm_oom_record *oom,
					enum gm_holes_level level)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_OOM_BLOCKS);
	struct gm_extents extents = {0};

	for (uint32_t i = oom->first_block; i < records && i - oom->first_block < oom->blocks;
	     i++) {
		struct gm_oom_block_record copy;
		struct gm_alloc_record record = {0};

		if (!gm_reader_get(doc->reader, GM_TABLE_OOM_BLOCKS, i, &copy, sizeof(copy)))
			continue;
		record.key = copy.address;
		record.bytes = copy.bytes;
		record.site = copy.site < doc->sites_count ? copy.site : GM_NONE;
		record.flags = copy.flags & GM_OOM_BLOCK_TORCH ? GM_ALLOC_TORCH : 0;
		record.space = copy.space;
		record.kind = copy.kind;
		record.device = oom->device;
		record.level = copy.level;
		gm_extents_add(&extents, doc, &record, level, 0);
	}
	return extents;
}

static struct gm_fragmentation *add(struct gm_doc *doc, struct gm_oom *oom,
				    enum gm_holes_level level, uint64_t reserved_bytes,
				    uint64_t used_bytes)
{
	struct gm_fragmentation *row;

	if (reserved_bytes == GM_NO_BYTES || !reserved_bytes || used_bytes > reserved_bytes)
		return NULL;
	row = gm_zone_push(&doc->zone, &oom->holes, &oom->holes_count, sizeof(*row));
	gm_holes_begin(row, oom->record.device, level);
	row->time_ns = oom->record.time_ns;
	row->reserved_bytes = reserved_bytes;
	row->used_bytes = used_bytes;
	return row;
}

/* A snapshot that was imported has no copies, and its largest hole in the record. */
static void load_torch(struct gm_doc *doc, struct gm_oom *oom, struct gm_fragmentation *row)
{
	uint64_t *largest_bytes = &oom->record.torch_largest_hole_bytes;
	struct gm_extents extents = extents_of_oom(doc, &oom->record, GM_HOLES_TORCH);

	lay_out(doc, &extents, GM_HOLES_TORCH, row);
	if (*largest_bytes == GM_NO_BYTES)
		*largest_bytes = row->largest_free_bytes;
	row->largest_free_bytes = *largest_bytes;
}

void gm_load_oom_levels(struct gm_doc *doc, struct gm_oom *oom)
{
	const struct gm_oom_record *record = &oom->record;
	struct gm_fragmentation *row;
	struct gm_extents extents;

	row = add(doc, oom, GM_HOLES_TORCH, record->torch_reserved_bytes,
		  record->torch_allocated_bytes);
	if (row && !doc->header->sample_bytes)
		load_torch(doc, oom, row);
	add(doc, oom, GM_HOLES_POOL, record->pool_reserved_bytes, record->pool_used_bytes);
	row = add(doc, oom, GM_HOLES_SLAB, record->slab_reserved_bytes, record->slab_used_bytes);
	if (row) {
		extents = extents_of_oom(doc, record, GM_HOLES_SLAB);
		lay_out(doc, &extents, GM_HOLES_SLAB, row);
	}
}
