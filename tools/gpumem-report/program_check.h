/*
 * Tells whether a program can be traced, before it is started.
 */
#ifndef GPUMEM_REPORT_PROGRAM_CHECK_H
#define GPUMEM_REPORT_PROGRAM_CHECK_H

#include "report/support/memory.h"
#include <stdbool.h>

struct gm_program_check {
	const char *untraceable; /* reason why no preload reaches it; NULL: one does */
	bool breaks;		 /* and it would not start with the preload */
};

/*
 * Looks at the file that execvp(3) would run for `words`, and of a script at its interpreter. Texts
 * live in the zone. A file that is not found or cannot be read counts as traceable: starting it
 * gives the better message.
 */
struct gm_program_check gm_check_program(struct gm_zone *zone, char *const *words);

/*
 * Returns the reason why no file can be written where the pattern of GPUMEMTRACE_OUT says, a clause
 * in the zone; NULL if one can. The shim makes missing directories.
 */
const char *gm_check_output(struct gm_zone *zone, const char *pattern);

#endif
