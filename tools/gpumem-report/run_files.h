/*
 * The files that a program started by `run` and all its descendants wrote.
 */
#ifndef GPUMEM_REPORT_RUN_FILES_H
#define GPUMEM_REPORT_RUN_FILES_H

#include "cli.h"

/*
 * Sets the variable by which the files of this run are recognised, in the environment that the
 * program inherits. A run inside another run belongs to both. Returns the token, in the zone; NULL
 * if there is no memory.
 */
const char *gm_run_token_set(struct gm_zone *zone);

/*
 * The files that match the pattern of GPUMEMTRACE_OUT and carry the token become the words of the
 * command line.
 */
void gm_run_find_files(struct gm_cli *cli, const char *out, const char *token);

#endif
