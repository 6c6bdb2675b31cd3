/*
 * The variables that the launcher of a job sets in the environment: this process's rank, the number
 * of ranks and the job's name. The functions call getenv only.
 */
#ifndef GM_RECORDER_LAUNCHER_H
#define GM_RECORDER_LAUNCHER_H

#include "store/layout.h"
#include <stddef.h>

/* The rank as the launcher wrote it, a decimal number; NULL outside a job. */
const char *gm_launcher_rank(void);

/*
 * Sets the header's rank, local_rank and world_size, each to -1 where the environment does not say.
 */
void gm_launcher_describe(struct gm_header *header);

/* Names of the variables that identify the job and its source revision, ended by NULL. */
extern const char *const gm_launcher_variables[];

#endif
