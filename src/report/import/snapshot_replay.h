/*
 * Replaying the history that a PyTorch snapshot holds, so that peaks, totals and growth are known
 * and not only the state at its end. PyTorch writes what was asked for; how much it gave follows
 * from the rules by which it splits blocks, and is believed only if the replay ends in the
 * snapshot's state.
 */
#ifndef GM_REPORT_IMPORT_SNAPSHOT_REPLAY_H
#define GM_REPORT_IMPORT_SNAPSHOT_REPLAY_H

#include "report/import/snapshot.h"
#include "report/import/snapshot_books.h"

/* The result of replaying a device's history. */
enum gm_replayed {
	GM_REPLAY_WHOLE,   /* from the first allocation on */
	GM_REPLAY_PARTIAL, /* it begins in the middle */
	GM_REPLAY_NONE	   /* there is none, or it does not end in the snapshot's state */
};

/*
 * Writes a device's figures, live allocations and events into the books' image. `base_us` is
 * time 0.
 */
enum gm_replayed gm_import_replay(const struct gm_snapshot *snapshot, struct gm_import_books *books,
				  int device, uint64_t base_us);

#endif
