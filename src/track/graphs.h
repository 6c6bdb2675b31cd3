/*
 * Memory of graphs. It is held from a launch on, at the address that its node was given when it was
 * made.
 */
#ifndef GM_TRACK_GRAPHS_H
#define GM_TRACK_GRAPHS_H

#include "track/event.h"

struct gm_graph_node {
	uint64_t address;
	bool frees; /* else it allocates */
};

/* An allocation node was made: the event says what a launch will allocate, and has the stack. */
void gm_track_graph_define(const struct gm_event *event);

extern uint32_t gm_graph_nodes __attribute__((visibility("hidden"))); /* (atomic) */

/* Returns whether there are allocation nodes. Without the lock. */
static inline bool gm_track_graph_nodes(void)
{
	return __atomic_load_n(&gm_graph_nodes, __ATOMIC_RELAXED) != 0;
}

/* A graph with these memory nodes was made executable as `exec`. */
void gm_track_graph_instantiate(uint64_t exec, bool auto_free, const struct gm_graph_node *nodes,
				uint32_t count);

/*
 * Returns the devices of the executable's memory as bits (the first 64); 0: it has no memory nodes.
 */
uint64_t gm_track_graph_devices(uint64_t exec);

/* A launch, successful or not (event->error), with its stack and function. */
void gm_track_graph_launch(uint64_t exec, const struct gm_event *event);

/*
 * A graph with these nodes, or an executable, was destroyed. No allocated memory is freed by that.
 */
void gm_track_graph_destroyed(const struct gm_graph_node *nodes, uint32_t count);
void gm_track_graph_exec_destroyed(uint64_t exec);

/* Forgets all graphs when a file was opened. For track/. */
void gm_graphs_reset(void);

#endif
