/*
 * Live blocks by size, see block_list.h.
 */
#include "report/doc/block_list.h"
#include <stdlib.h>

static int compare_sizes(const void *a, const void *b)
{
	const struct gm_block *x = *(const struct gm_block *const *)a,
			      *y = *(const struct gm_block *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->serial < y->serial ? -1 : 1;
}

struct gm_block_list gm_list_blocks(struct gm_doc *doc, uint64_t least, uint64_t most)
{
	struct gm_block_list list = {0};

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *record = &copy;
		const struct gm_block **slot;

		if (record->kind == GM_KIND_NONE || record->bytes < least || record->bytes > most ||
		    (record->site < doc->sites_count && doc->sites[record->site].hidden))
			continue;
		slot = gm_zone_push(&doc->zone, &list.blocks, &list.count, sizeof(*slot));
		*slot = &doc->blocks[i];
		list.bytes += record->bytes;
	}
	if (list.count)
		qsort(list.blocks, list.count, sizeof(*list.blocks), compare_sizes);
	return list;
}
