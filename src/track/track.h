/*
 * The start and the end of the tracker.
 */
#ifndef GM_TRACK_TRACK_H
#define GM_TRACK_TRACK_H

#include <stdbool.h>

/*
 * Prepares the tables of a file that was just opened, and forgets everything from before. Called
 * under the start lock and before any other function of track/; again in the child of a fork that
 * opened its own file. `history`: the ring of the last events is kept.
 */
void gm_track_start(bool history);

/* Closes the records when the process ends (`end`: enum gm_end). Safe in signal handlers. */
void gm_track_end(unsigned end, int status);

/* The process did not end after all: its exec failed. */
void gm_track_resume(void);

#endif
