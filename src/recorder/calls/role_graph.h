/*
 * Graph nodes that allocations become.
 */
#ifndef GM_RECORDER_ROLE_GRAPH_H
#define GM_RECORDER_ROLE_GRAPH_H

#include "track/event.h"

/* An allocation node has its address: event->key. */
void gm_graph_node_made(struct gm_event *event);

#endif
