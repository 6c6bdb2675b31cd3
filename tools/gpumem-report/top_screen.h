/*
 * `top` on a terminal.
 */
#ifndef GPUMEM_REPORT_TOP_SCREEN_H
#define GPUMEM_REPORT_TOP_SCREEN_H

#include "report/render/text_top.h"

/*
 * Shows the file until the user quits. Returns 0, or -1 with a sentence in `error` when it can no
 * longer be read or there is no terminal.
 */
int gm_top_run(const char *path, const struct gm_options *options, char *error, size_t error_bytes);

#endif
