/*
 * See holes.h.
 */
#include "report/holes/holes.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

void gm_holes_begin(struct gm_fragmentation *row, int device, enum gm_holes_level level)
{
	static const char *const names[GM_HOLES_LEVELS] = {"torch", "pool", "slab", "custom"};

	*row = (struct gm_fragmentation){.device = device,
					 .level = names[level],
					 .time_ns = GM_NO_BYTES,
					 .largest_free_bytes = GM_NO_BYTES};
}

static int compare_pinners(const void *a, const void *b)
{
	const struct gm_pinner *x = a, *y = b;

	if (x->hole_bytes != y->hole_bytes)
		return x->hole_bytes < y->hole_bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* Keeps those that most holes are charged to. */
static void keep_pinners(struct gm_doc *doc, struct gm_pinner *pinners,
			 struct gm_fragmentation *row)
{
	unsigned n = 0;

	for (unsigned i = 0; i < doc->sites_count; i++)
		if (pinners[i].hole_bytes)
			pinners[n++] = pinners[i];
	if (n)
		qsort(pinners, n, sizeof(*pinners), compare_pinners);
	row->pinners_count = n < GM_PINNERS ? n : GM_PINNERS;
	row->pinners = gm_zone_alloc(&doc->zone, row->pinners_count, sizeof(*row->pinners));
	memcpy(row->pinners, pinners, row->pinners_count * sizeof(*row->pinners));
}

void gm_holes_fill(struct gm_doc *doc, const struct gm_extents *extents, enum gm_holes_level level,
		   struct gm_fragmentation *row)
{
	size_t bytes = (doc->sites_count + 1) * sizeof(struct gm_pinner);
	struct gm_pinner *pinners = level == GM_HOLES_TORCH || level == GM_HOLES_CUSTOM
					    ? memset(gm_realloc(NULL, bytes), 0, bytes)
					    : NULL;
	struct gm_holes holes = gm_holes_of(extents->list, extents->count, pinners);

	row->segments = holes.segments;
	row->reserved_bytes = holes.reserved_bytes;
	row->used_bytes = holes.used_bytes;
	row->releasable_bytes = holes.releasable_bytes;
	row->split_bytes = holes.split_bytes;
	if (holes.segments)
		row->largest_free_bytes = holes.largest_bytes;
	if (pinners)
		keep_pinners(doc, pinners, row);
	free(pinners);
}
