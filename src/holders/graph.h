/*
 * The graph of a CPython's objects: the objects that can be reached from each root, and those of
 * them that hold the addresses that are asked for. internal.h has the types that it is made of.
 */
#ifndef GM_HOLDERS_GRAPH_H
#define GM_HOLDERS_GRAPH_H

#include "holders/internal.h"

#define GM_NO_NODE	 UINT32_MAX
#define GM_MOST_HOLDINGS 32u /* of a block */

/* The ways in which an object was reached, the surest first. */
enum gm_stage {
	GM_STAGE_MODULES, /* from sys.modules */
	GM_STAGE_THREADS, /* from a thread's frames and state */
	GM_STAGE_REST,	  /* from what else an interpreter keeps */
	GM_STAGE_UNSURE,  /* through a word of an unknown structure, or a frame's stack */
	GM_STAGE_WEAK,	  /* only through a weak reference, but not garbage */
	GM_STAGE_UNKNOWN, /* referred to by something that is not a known object */
	GM_STAGE_GARBAGE, /* unreachable: gc.collect() frees it */
	GM_STAGE_CHANGED, /* unreachable, but not the same as in the search before */
	GM_STAGES
};

struct gm_node {
	uint64_t address;
	uint32_t parent; /* GM_NO_NODE */
	uint32_t type;	 /* index into the python's types, or GM_PSEUDO_TYPES less a pseudo kind */
};

/* A reference to an address that was asked for. */
struct gm_holding {
	uint32_t block, node;
	uint64_t leaf; /* an int; 0: the memory at `slot` holds the address */
	uint64_t slot;
	uint32_t rank; /* the smaller, the more likely it is what keeps the block */
	uint32_t stage;
	uint32_t next; /* of the same block, + 1 */
};

struct gm_unreached;

struct gm_graph {
	struct gm_cpython *python;
	struct gm_node *nodes;
	uint32_t count, room;
	uint32_t *index;
	uint32_t index_room;
	uint32_t stage_end[GM_STAGES]; /* nodes of a stage: from where the one before it ends */
	const uint64_t *blocks;	       /* addresses, the caller's */
	uint32_t blocks_count;
	uint32_t *block_index, block_room;
	struct gm_holding *holdings;
	uint32_t holdings_count, holdings_room;
	uint32_t *first_holding; /* of each block, + 1 */
	struct gm_unreached *unreached; /* for a later search to compare */
	uint64_t tracked, references;
	bool full; /* memory ran out or a bound was met: not everything was seen */
};

/*
 * Looks for the addresses, which lie in `blocks` and stay there. False if memory ran out. The
 * caller frees it. With an `earlier` search of the same process, which may be NULL, only that is
 * garbage which was garbage then, with the same counts and references.
 */
bool gm_graph_build(struct gm_graph *graph, struct gm_cpython *python, const uint64_t *blocks,
		    uint32_t count, const struct gm_graph *earlier);
void gm_graph_free(struct gm_graph *graph);

/* The type that a node is walked by. */
const struct gm_type *gm_graph_type(const struct gm_graph *graph, uint32_t node);

enum gm_stage gm_graph_stage(const struct gm_graph *graph, uint32_t node);

/* The block at an address, GM_NO_NODE. */
uint32_t gm_graph_block(const struct gm_graph *graph, uint64_t address);

/* Calls `each` for the frames of a thread, innermost first, until it returns false. */
void gm_thread_frames(struct gm_cpython *python, uint64_t thread,
		      bool (*each)(uint64_t frame, void *data), void *data);

#endif
