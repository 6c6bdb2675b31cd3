/*
 * From a graph to chains of links that were read again. For the files of this folder.
 */
#ifndef GM_HOLDERS_LINKS_H
#define GM_HOLDERS_LINKS_H

#include "holders/graph.h"

/* The link from a node's parent to it, or to an int or a word that holds an address. */
struct gm_link {
	uint32_t parent;
	uint32_t child;	 /* a node; GM_NO_NODE of the last link */
	uint64_t target; /* the object's address; 0: the word at `edge.slot` */
	uint32_t block;	 /* of the last link */
	bool found;
	struct gm_edge edge;
	uint32_t first_need, needs_count;
	const char *step, *exact; /* its text; NULL of a link that is part of another's */
	bool has_text;
};

struct gm_links {
	struct gm_graph *graph;
	struct gm_link *links;
	uint32_t count, room;
	struct gm_need *needs;
	uint32_t needs_count, needs_room;
	uint32_t *of_node; /* link to a node, + 1 */
	struct gm_text_block *texts;
};

bool gm_links_init(struct gm_links *links, struct gm_graph *graph);
void gm_links_free(struct gm_links *links);

/* Wants the links of a holding; returns the number of its last one, GM_NO_NODE if memory ran out.
 */
uint32_t gm_links_want(struct gm_links *links, const struct gm_holding *holding);

/* Looks for all wanted links that were not found yet, past the memory's cache. */
void gm_links_find(struct gm_links *links);

/* Looks again for the links that end with `last`. */
void gm_links_renew(struct gm_links *links, uint32_t last);

/* The address of the object at which the links begin that end with `last`. */
uint64_t gm_links_root(const struct gm_links *links, uint32_t last);

/* True if all links that end with `last` were found and are as they were, all at once. */
bool gm_links_hold(const struct gm_links *links, uint32_t last);

#endif
