/*
 * The writer of OUT.events, the complete history, whose format is in journal_code.h: a file beside
 * the output file that is mapped and gets its blocks like it. Entries are stored under the
 * tracker's lock, so their order is that of the changes to the tables. The functions call libc
 * alone and no malloc.
 */
#ifndef GM_STORE_JOURNAL_H
#define GM_STORE_JOURNAL_H

#include "store/journal_code.h"
#include "store/output_path.h"
#include <stdbool.h>

/* True while a history is kept. The functions that add an entry may be called only then. */
extern bool gm_journal_on;

/*
 * Begins the history of the output file whose header is `file`, which describes the process already
 * and stays mapped until gm_journal_forget, beside the path `beside`; the history gets at most
 * `cap_bytes`. Returns 0, or -errno if there is no history: -EROFS if `beside` is NULL, because the
 * output file itself is kept in memory. Under the start lock.
 */
int gm_journal_open(struct gm_header *file, const struct gm_output_path *beside,
		    uint64_t cap_bytes);

/*
 * The table of live allocations gained a record, lost one, or one's size changed. `expected_bytes`:
 * as in gm_journal_put_add.
 */
void gm_journal_add(const struct gm_alloc_record *alloc, uint32_t index, uint64_t expected_bytes);
void gm_journal_drop(uint32_t index, uint64_t time_ns, uint32_t thread);
void gm_journal_resize(uint32_t index, uint64_t bytes, uint64_t time_ns, uint32_t thread);

/* A call that changed nothing there, or what is known of the one that does next. */
void gm_journal_call(const struct gm_event_record *event);

/*
 * Adds a part of a checkpoint, as gm_journal_put_part does. Returns its bytes, 0 if there is no
 * room: then the history has ended, or does at the next entry.
 */
uint32_t gm_journal_part(enum gm_checkpoint_part part, uint32_t index, const void *record,
			 uint64_t time_ns);

/* The number of the open chunk plus 1; 0 before the first one. */
uint32_t gm_journal_chunks(void);

/* Returns for how many more checkpoints the list has room. */
uint32_t gm_journal_checkpoints_left(void);

/* Lists the checkpoint whose GM_PART_END was just added; it began in the chunk of that number. */
void gm_journal_list_checkpoint(uint32_t begin);

/*
 * Ends the history where it stands, of a file whose tables are about to be emptied: the caller
 * takes GM_FEATURE_JOURNAL from the file. Nothing if none is kept. Under the tracker's lock.
 */
void gm_journal_stop(void);

/* Parts of gm_store_finish, gm_store_in_child and gm_store_forget, which call them. */
int gm_journal_finish(void);
void gm_journal_in_child(void);
void gm_journal_forget(void);

#endif
