/*
 * plan --search: the largest batch by running the program.
 */
#ifndef GPUMEM_REPORT_PLAN_SEARCH_H
#define GPUMEM_REPORT_PLAN_SEARCH_H

#include "cli.h"

/*
 * Runs the command line's words as a program, with each "{}" replaced by a batch, under the shim
 * and GPUMEMTRACE_CAPACITY, until the largest batch is found that runs without a refused request.
 * Prints it and returns an exit status.
 */
int gm_plan_search(struct gm_cli *cli, uint64_t capacity_bytes);

#endif
