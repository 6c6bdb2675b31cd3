/*
 * The checkpoints of a complete history (store/journal_code.h): the tables of the tracker, written
 * into the history a few records at a time. For track/, under the lock.
 */
#ifndef GM_TRACK_CHECKPOINT_H
#define GM_TRACK_CHECKPOINT_H

/* Forgets a checkpoint that was begun: the tables were emptied, or the history is another one. */
void gm_checkpoint_reset(void);

/*
 * Writes the next records of a checkpoint if the history grew by a chunk since the last call, or
 * begins one if the history grew enough since the last checkpoint. To be called while a history is
 * kept (gm_journal_on) and at the end of an update, when the tables agree with each other and with
 * the history.
 */
void gm_checkpoint_step(void);

#endif
