/*
 * Files that commands write. Each is written beside its place under another name and put there when
 * it is whole, so that a full disk or a kill costs no earlier file, and nobody finds half a one.
 * It is readable to whom the files are that it was made from.
 */
#ifndef GM_TOOL_OUTPUT_H
#define GM_TOOL_OUTPUT_H

#include "cli.h"

struct gm_output {
	FILE *file;
	char *target;	 /* NULL: standard output, or a device that is written in place */
	char *temporary; /* NULL after the end */
};

/*
 * Opens an output, or for NULL and "-" standard output. Returns false after a sentence. One is open
 * at a time.
 */
bool gm_output_begin(struct gm_output *output, const struct gm_cli *cli, const char *path);

/*
 * Puts the file in its place, or removes it if `failed` or if it could not be written whole.
 * Returns false after a sentence, except about standard output, where main says it.
 */
bool gm_output_end(struct gm_output *output, bool failed);

/*
 * Makes sure that a file which a library opens by its path is there, with the right mode. Returns
 * whether it was made now.
 */
bool gm_output_prepare(const struct gm_cli *cli, const char *path);

#endif
