/*
 * The files that a command line names: itself, or what lies in a directory.
 */
#ifndef GM_REPORT_OPEN_INPUTS_H
#define GM_REPORT_OPEN_INPUTS_H

#include "report/support/memory.h"
#include <stdbool.h>

struct gm_inputs {
	struct gm_zone zone;
	char **paths;
	unsigned count;
	bool failed; /* a directory could not be read or holds no output file */
};

/*
 * Replaces each word that is a directory by the output files in it and below it, in the order of
 * their names; other words stay as they are. What lies there and is no output file is named to
 * `complain` in one sentence and is no failure, unless it is called one (NAME.gmt): then it stays,
 * for the reader to say what is wrong with it. The caller frees it.
 */
struct gm_inputs gm_inputs_find(char *const *words, unsigned count,
				void (*complain)(const char *sentence));
void gm_inputs_free(struct gm_inputs *inputs);

#endif
