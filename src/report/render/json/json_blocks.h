/*
 * Live blocks and the history of an address as JSON.
 */
#ifndef GM_REPORT_RENDER_JSON_JSON_BLOCKS_H
#define GM_REPORT_RENDER_JSON_JSON_BLOCKS_H

#include "report/history/address.h"
#include <jansson.h>

/* `blocks[]`; a new reference. */
json_t *gm_json_blocks(const struct gm_doc *doc, const struct gm_block *const *blocks,
		       unsigned count);

/* `address {}`; a new reference. */
json_t *gm_json_address(struct gm_doc *doc, const struct gm_address_history *history);

#endif
