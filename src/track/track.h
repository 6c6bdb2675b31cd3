/*
 * The start and the end of the tracker.
 */
#ifndef GM_TRACK_TRACK_H
#define GM_TRACK_TRACK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Prepares the tables of a file that was just opened, and forgets everything from before. Called
 * under the start lock and before any other function of track/; again in the child of a fork that
 * opened its own file. `history`: the ring of the last events is kept.
 */
void gm_track_start(bool history);

/*
 * Begins a period of a process that is at work already: the tables are emptied, because nobody
 * knows what was freed since they were filled. What is in use on the devices now is measured by the
 * next sample of their ledgers (gm_device_record's `before_bytes`). Other threads may be recording:
 * what they remember of the tables, the indices of records and the addresses of cached counters,
 * leads to memory that is mapped and empty. `history` as in gm_track_start.
 */
void gm_track_period_begin(bool history);

/* Closes the records when the process ends (`end`: enum gm_end). Safe in signal handlers. */
void gm_track_end(unsigned end, int status);

/* The process did not end after all: its exec failed. */
void gm_track_resume(void);

#endif
