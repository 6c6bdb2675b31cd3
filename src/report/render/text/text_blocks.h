/*
 * Live blocks, and the history of an address, for people.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_BLOCKS_H
#define GM_REPORT_RENDER_TEXT_TEXT_BLOCKS_H

#include "report/doc/block_list.h"
#include "report/history/address.h"
#include "report/render/text/text.h"

void gm_text_blocks(struct gm_out *out, struct gm_doc *doc, const struct gm_block_list *list);
void gm_text_address(struct gm_out *out, struct gm_doc *doc,
		     const struct gm_address_history *history);

#endif
