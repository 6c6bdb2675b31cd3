/*
 * Live blocks by size.
 */
#ifndef GM_REPORT_DOC_BLOCK_LIST_H
#define GM_REPORT_DOC_BLOCK_LIST_H

#include "report/doc/doc.h"

/* The live blocks of `least` to `most` bytes that --device, --kind and --level leave. */
struct gm_block_list {
	const struct gm_block **blocks; /* largest first; in the document's zone */
	unsigned count;
	uint64_t bytes;
};

struct gm_block_list gm_list_blocks(struct gm_doc *doc, uint64_t least, uint64_t most);

#endif
