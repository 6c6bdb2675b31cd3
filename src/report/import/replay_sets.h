/*
 * The state of one device's allocator while its history is replayed: segments and blocks as address
 * ranges. Knows PyTorch's rules and nothing of figures.
 */
#ifndef GM_REPORT_IMPORT_REPLAY_SETS_H
#define GM_REPORT_IMPORT_REPLAY_SETS_H

#include "report/import/ranges.h"
#include "report/import/snapshot.h"

/* An allocation, named by the tag of its range. */
struct gm_replayed_allocation {
	uint32_t stack, site;
	uint64_t serial, time_ns, stream;
	uint64_t left_bytes; /* of a mapping: not yet unmapped */
	bool pending;	     /* freed, not yet reusable */
	bool expandable;
};

struct gm_sets {
	const struct gm_snapshot *snapshot;
	int device;
	struct gm_ranges segments, blocks;
	struct gm_replayed_allocation *lives;
	unsigned lives_count, lives_room;
	uint64_t max_split_bytes;
};

/* The state at the snapshot's end. */
void gm_sets_load(struct gm_sets *sets, const struct gm_snapshot *snapshot, int device);
void gm_sets_free(struct gm_sets *sets);

/* Goes back before an event; false if the state cannot have come from it. */
bool gm_sets_undo(struct gm_sets *sets, const struct gm_snapshot_event *event);

/* A new allocation's number, for the tag of its range. */
uint64_t gm_sets_new(struct gm_sets *sets, uint32_t stack, uint64_t stream, bool expandable);

/*
 * Bytes that the allocator hands out at `start` for a request: the free block there, or its front.
 * 0 if there is no room.
 */
uint64_t gm_sets_block_bytes(const struct gm_sets *sets, uint64_t start, uint64_t requested);

/* True if this is the state at the snapshot's end, to the byte. */
bool gm_sets_final(const struct gm_sets *sets);

/*
 * Bytes of private pools (of CUDA graphs, and of pools that the program made) that no block has.
 * Pools are known of the segments that are there at the snapshot's end.
 */
uint64_t gm_sets_private_idle(const struct gm_sets *sets);

/* The largest stretch of segments without a block; GM_NO_BYTES without segments. */
uint64_t gm_sets_largest_hole(const struct gm_sets *sets);

#endif
