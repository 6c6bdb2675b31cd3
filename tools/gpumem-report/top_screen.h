/*
 * `top` on a terminal.
 */
#ifndef GPUMEM_REPORT_TOP_SCREEN_H
#define GPUMEM_REPORT_TOP_SCREEN_H

#include "report/render/top/top.h"

/*
 * Shows the files until the user quits; those that cannot be read are told to `complain` and left
 * out. Returns how many those are, or -1 with a sentence in `error` when none can be read any
 * longer or there is no terminal.
 */
int gm_top_run(char *const *paths, unsigned count, const struct gm_options *options,
	       void (*complain)(const char *sentence), char *error, size_t error_bytes);

#endif
