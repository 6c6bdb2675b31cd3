/*
 * The largest hole in PyTorch's segments at the moment of an OOM, from the copies of segments,
 * mappings and blocks that the shim made then. Segments are told by their site, or by lying around
 * blocks.
 */
#include "report/holes/oom_holes.h"
#include <stdlib.h>
#include <string.h>

/* Copies of an OOM that lie in the file, sorted by address, what holds others first. */
struct copies {
	struct gm_oom_block_record *list;
	unsigned count;
};

static bool divides(const struct gm_oom_block_record *copy)
{
	return copy->level == GM_LEVEL_DRIVER;
}

static int compare(const void *a, const void *b)
{
	const struct gm_oom_block_record *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return divides(y) - divides(x);
}

static struct copies load(struct gm_doc *doc, const struct gm_oom_record *oom)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_OOM_BLOCKS), i;
	struct copies copies = {0};

	if (oom->first_block >= records)
		return copies;
	for (i = oom->first_block; i < records && i - oom->first_block < oom->blocks; i++) {
		struct gm_oom_block_record copy;

		if (!gm_reader_get(doc->reader, GM_TABLE_OOM_BLOCKS, i, &copy, sizeof(copy)) ||
		    copy.bytes > UINT64_MAX - copy.address || copy.level == GM_LEVEL_CUSTOM)
			continue;
		*(struct gm_oom_block_record *)gm_zone_push(&doc->zone, &copies.list, &copies.count,
							    sizeof(copy)) = copy;
	}
	if (copies.count)
		qsort(copies.list, copies.count, sizeof(*copies.list), compare);
	return copies;
}

/* Memory that PyTorch could hand out from: its segments, and mappings, which only it divides. */
static bool by_torch(const struct gm_doc *doc, const struct gm_oom_block_record *segment)
{
	if (segment->kind == GM_KIND_NONE)
		return true;
	return segment->site < doc->sites_count &&
	       (doc->sites[segment->site].record.flags & GM_SITE_TORCH);
}

/* Walks the segment at `first`, and mappings that go on from it; the index after them. */
static unsigned walk(const struct gm_doc *doc, const struct copies *copies, unsigned first,
		     uint64_t *hole)
{
	const struct gm_oom_block_record *segment = &copies->list[first];
	uint64_t at = segment->address, end = segment->address + segment->bytes;
	bool torch = by_torch(doc, segment), mapping = segment->kind == GM_KIND_NONE;
	unsigned i;

	for (i = first + 1; i < copies->count; i++) {
		const struct gm_oom_block_record *copy = &copies->list[i];

		if (divides(copy)) {
			if (!mapping || copy->kind != GM_KIND_NONE || copy->address != end)
				break;
			end = copy->address + copy->bytes;
			continue;
		}
		if (torch && copy->address > at && copy->address - at > *hole)
			*hole = copy->address - at;
		if (copy->address + copy->bytes > at)
			at = copy->address + copy->bytes;
	}
	if (torch && end > at && end - at > *hole)
		*hole = end - at;
	return i;
}

void gm_load_oom_hole(struct gm_doc *doc, struct gm_oom *oom)
{
	struct copies copies;
	uint64_t hole = 0;
	unsigned i = 0;

	if (oom->record.torch_reserved_bytes == GM_NO_BYTES ||
	    oom->record.torch_largest_hole_bytes != GM_NO_BYTES)
		return;
	copies = load(doc, &oom->record);
	while (i < copies.count)
		i = divides(&copies.list[i]) ? walk(doc, &copies, i, &hole) : i + 1;
	if (copies.count)
		oom->record.torch_largest_hole_bytes = hole;
}
