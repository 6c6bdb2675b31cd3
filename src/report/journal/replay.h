/*
 * Playing a history: the table of live allocations as it was after each entry, and the events that
 * those entries were, as the ring would have kept them.
 */
#ifndef GM_REPORT_JOURNAL_REPLAY_H
#define GM_REPORT_JOURNAL_REPLAY_H

#include "store/journal_code.h"

struct gm_replay {
	struct gm_alloc_record *records; /* by number; GM_STATE_EMPTY: not live */
	uint32_t count, room;
	uint64_t additions, odd;      /* entries that do not fit the table, and were passed over */
	struct gm_event_record unmap; /* the latest unmapping call: what it ended follows */
	uint64_t told; /* serial of the allocation whose free was a call of its own */
	bool partial;  /* a checkpoint was begun and has not ended */
};

/* The effect of an entry on the table. The records stay as they are until the next entry. */
struct gm_replay_step {
	const struct gm_alloc_record *added, *removed, *resized;
	uint64_t more_bytes; /* of the resized one */
};

/* Appends a record that is live, and returns its number. */
uint32_t gm_replay_put(struct gm_replay *replay, const struct gm_alloc_record *record);

void gm_replay_free(struct gm_replay *replay);

/*
 * The parts of a checkpoint that concern the table: `most` is how many records it can have; a live
 * record; and the number of records that the table has when the checkpoint ends. What is damaged is
 * passed over.
 */
void gm_replay_begin(struct gm_replay *replay, uint32_t most);
void gm_replay_restore(struct gm_replay *replay, uint32_t number,
		       const struct gm_alloc_record *record);
void gm_replay_end(struct gm_replay *replay, uint32_t count);

struct gm_replay_step gm_replay_apply(struct gm_replay *replay,
				      const struct gm_journal_entry *entry);

/*
 * The event of an entry that was just applied, with what a free frees and what an unmapping unmaps,
 * one event for each; false where it is none: reserved space ends in silence, and a free that was a
 * call has been told.
 */
bool gm_replay_event(struct gm_replay *replay, const struct gm_journal_entry *entry,
		     const struct gm_replay_step *step, struct gm_event_record *event);

#endif
