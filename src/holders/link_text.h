/*
 * The words of a chain.
 */
#ifndef GM_HOLDERS_LINK_TEXT_H
#define GM_HOLDERS_LINK_TEXT_H

#include "holders/links.h"

/*
 * The steps of the chain that ends with the link `last`, without and with indices and keys; at most
 * `most`. Returns how many. The texts live until gm_links_free_text.
 */
unsigned gm_links_text(struct gm_links *links, uint32_t last, const char **steps,
		       const char **exact, unsigned most);

void gm_links_free_text(struct gm_links *links);

#endif
