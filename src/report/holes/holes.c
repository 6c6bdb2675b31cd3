/*
 * Holes: what is free between the blocks of PyTorch's segments (segments.h) and in the slabs that
 * small driver allocations share, and who keeps it. Works on the live allocations, sorted by device
 * and address.
 */
#include "report/holes/holes.h"
#include "account/sizes.h"
#include "report/holes/segments.h"
#include <stdlib.h>
#include <string.h>

/* What is summed up for one device and level. */
struct tally {
	struct gm_doc *doc;
	struct gm_fragmentation *row;
	struct gm_pinner *pinners; /* one per site */
	unsigned *charged;	   /* per site: the last segment it was charged for */
};

static void tally_hole(struct tally *tally, const struct gm_segment *segment, uint64_t bytes)
{
	if (bytes > tally->row->largest_free_bytes || tally->row->largest_free_bytes == GM_NO_BYTES)
		tally->row->largest_free_bytes = bytes;
	if (segment->used_bytes && !segment->expandable)
		tally->row->split_bytes += bytes;
}

/* Charges a segment's free bytes to the sites whose blocks keep it from being given back, once
 * each. */
static void pin(struct tally *tally, const struct gm_segment *segment, unsigned first,
		unsigned last)
{
	uint64_t free_bytes = segment->end - segment->start - segment->used_bytes;

	for (unsigned i = first; free_bytes && i < last; i++) {
		const struct gm_alloc_record *block = &tally->doc->blocks[i].record;
		struct gm_pinner *pinner;

		if (!gm_is_torch_block(block) || block->site == GM_NONE)
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
static void walk_segment(struct tally *tally, struct gm_segment *segment, unsigned first)
{
	const struct gm_doc *doc = tally->doc;
	uint64_t at = segment->start;
	unsigned i;

	for (i = first; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;

		if (block->device != tally->row->device || block->key >= segment->end)
			break;
		if (!gm_is_torch_block(block) || block->key < at)
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
	row->pinners = gm_zone_alloc(&tally->doc->zone, row->pinners_count, sizeof(*row->pinners));
	memcpy(row->pinners, tally->pinners, row->pinners_count * sizeof(*row->pinners));
}

void gm_holes_begin(struct gm_fragmentation *row, int device, enum gm_holes_level level)
{
	static const char *const names[GM_HOLES_LEVELS] = {"torch", "pool", "slab"};

	*row = (struct gm_fragmentation){.device = device,
					 .level = names[level],
					 .time_ns = GM_NO_BYTES,
					 .largest_free_bytes = GM_NO_BYTES};
}

void gm_sum_torch_holes(struct gm_doc *doc, struct gm_segment *segments, unsigned count,
			struct gm_fragmentation *row)
{
	struct tally tally = {.doc = doc, .row = row};

	tally.pinners = gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*tally.pinners));
	tally.charged = gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*tally.charged));
	memset(tally.pinners, 0, (doc->sites_count + 1) * sizeof(*tally.pinners));
	memset(tally.charged, 0, (doc->sites_count + 1) * sizeof(*tally.charged));
	for (unsigned i = 0; i < count; i++) {
		if (!segments[i].torch)
			continue;
		row->segments++;
		row->reserved_bytes += segments[i].end - segments[i].start;
		row->used_bytes += segments[i].used_bytes;
		walk_segment(&tally, &segments[i],
			     gm_first_block(doc, row->device, segments[i].start));
	}
	keep_pinners(&tally);
	free(tally.pinners);
	free(tally.charged);
}

static bool in_slab(const struct gm_alloc_record *block, int device)
{
	return block->device == device && gm_in_slab(block) && block->bytes;
}

/* Requests of at most 1 MiB share slabs of 2 MiB: one live allocation keeps a whole slab. */
void gm_sum_slab_holes(const struct gm_doc *doc, struct gm_fragmentation *row)
{
	uint64_t slab = 0, at = 0, hole;

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;
		uint64_t bytes = gm_round_units(block->bytes);

		if (!in_slab(block, row->device))
			continue;
		if (row->segments == 0)
			row->largest_free_bytes = 0;
		if (row->segments == 0 || block->key >= slab + GM_SLAB_BYTES) {
			hole = row->segments ? slab + GM_SLAB_BYTES - at : 0;
			if (hole > row->largest_free_bytes)
				row->largest_free_bytes = hole;
			slab = at = gm_slab_of(block->key);
			row->segments++;
			row->reserved_bytes += GM_SLAB_BYTES;
		}
		if (block->key > at && block->key - at > row->largest_free_bytes)
			row->largest_free_bytes = block->key - at;
		if (block->key + bytes > slab + GM_SLAB_BYTES)
			bytes = slab + GM_SLAB_BYTES - block->key;
		row->used_bytes += bytes;
		at = block->key + bytes;
	}
	hole = row->segments ? slab + GM_SLAB_BYTES - at : 0;
	if (row->segments && hole > row->largest_free_bytes)
		row->largest_free_bytes = hole;
	if (row->used_bytes > row->reserved_bytes)
		row->used_bytes = row->reserved_bytes;
}
