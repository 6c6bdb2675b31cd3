/*
 * See extents.h.
 */
#include "account/kinds.h"
#include "report/holes/extents.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

bool gm_by_torch(const struct gm_doc *doc, const struct gm_alloc_record *alloc)
{
	if (doc->uncached_torch || alloc->kind == GM_KIND_ASYNC)
		return false;
	return alloc->flags & GM_ALLOC_TORCH ||
	       (alloc->site != GM_NONE && doc->sites[alloc->site].from_c10);
}

void gm_extents_add(struct gm_extents *extents, const struct gm_doc *doc,
		    const struct gm_alloc_record *alloc, enum gm_holes_level level, uint32_t number)
{
	struct gm_extent of[2];
	unsigned count = gm_extents_of(alloc, level, of);

	if (extents->count + count > extents->room) {
		extents->room = extents->room ? 2 * extents->room : 256;
		extents->list = gm_realloc(extents->list, extents->room * sizeof(*extents->list));
	}
	for (unsigned i = 0; i < count; i++) {
		if (level == GM_HOLES_SLAB && of[i].owned) {
			if (of[i].start == extents->slab && extents->count)
				continue;
			extents->slab = of[i].start;
		}
		if (level == GM_HOLES_TORCH && gm_is_divisible(alloc))
			of[i].owned = gm_by_torch(doc, alloc);
		of[i].number = number;
		extents->list[extents->count++] = of[i];
	}
}

struct gm_extents gm_extents_now(const struct gm_doc *doc, int device, enum gm_holes_level level)
{
	return gm_extents_first(doc, doc->blocks_count, device, level);
}

struct gm_extents gm_extents_first(const struct gm_doc *doc, unsigned count, int device,
				   enum gm_holes_level level)
{
	struct gm_extents extents = {0};

	for (unsigned i = 0; i < count; i++) {
		const struct gm_alloc_record block = gm_work_block(doc, i);

		if (block.device == device)
			gm_extents_add(&extents, doc, &block, level, i);
	}
	gm_extents_sort(extents.list, extents.count);
	return extents;
}

bool gm_extents_count(const struct gm_doc *doc, const struct gm_alloc_record *alloc,
		      enum gm_holes_level level)
{
	struct gm_extent of[2];
	unsigned count = gm_extents_of(alloc, level, of);

	return count && (of[0].owned || of[0].role == GM_EXTENT_BLOCK ||
			 of[0].role == GM_EXTENT_POOL_BLOCK ||
			 (level == GM_HOLES_TORCH && gm_is_divisible(alloc) &&
			  gm_by_torch(doc, alloc)));
}

void gm_extents_free(struct gm_extents *extents)
{
	free(extents->list);
	*extents = (struct gm_extents){0};
}
