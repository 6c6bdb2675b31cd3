/*
 * Queries to the driver about the inside of arrays and graphs; as those of query.h.
 */
#ifndef GM_RECORDER_QUERY_LAYOUT_H
#define GM_RECORDER_QUERY_LAYOUT_H

#include "track/graphs.h"

#include <stdbool.h>
#include <stdint.h>

/* Finds the functions in libcuda; by gm_query_init. */
void gm_query_layouts_init(void);

/*
 * Bytes of an array or a mipmapped array as the driver lays it out, computed from the descriptor
 * that the driver keeps; 0 if it does not say. A tile is 64 B by 8 rows, as measured on an H100.
 */
uint64_t gm_query_array_bytes(uint64_t array, bool mipmapped);

/*
 * The memory nodes of a graph and of the graphs inside it, in the order in which they were made.
 * They lie in pages of their own, which the caller releases.
 */
struct gm_graph_nodes {
	struct gm_graph_node *nodes;
	uint32_t count, capacity;
};
void gm_query_graph_nodes(uint64_t graph, struct gm_graph_nodes *nodes);
void gm_release_graph_nodes(struct gm_graph_nodes *nodes);

/*
 * Returns the number of a graph's nodes, without those of graphs inside it; 0 if it is not known.
 */
uint64_t gm_query_graph_size(uint64_t graph);

#endif
