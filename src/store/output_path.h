/*
 * The path of the output file: missing directories, names that are taken, network filesystems. For
 * the writer.
 */
#ifndef GM_STORE_OUTPUT_PATH_H
#define GM_STORE_OUTPUT_PATH_H

#include "store/new_file.h"

struct gm_output_path {
	char path[GM_PATH_BYTES];   /* of the live file */
	char wanted[GM_PATH_BYTES]; /* path at a clean exit; "" if the file is there already */
};

/*
 * Creates the file for `path`, with mode 0600 and without following links. Missing directories are
 * made (0700). An existing finished file is kept as NAME.old1 and so on. If a live process owns the
 * name, .PID is appended, and if one owns that as well, .PID-1 and so on. On a network filesystem,
 * or one that copies on write if a local disk takes the file, the live file lies in $TMPDIR or
 * /tmp, and a pointer file at `path` leads to it. Returns a descriptor open for reading and
 * writing, or -errno.
 */
int gm_output_create(struct gm_output_path *output, const char *path);

/*
 * Creates a second file beside `main`, on the same disk and by the same rules, whose name is that
 * of `main` and `suffix`, and which begins with the bytes of `data`. An old file of that name is
 * kept, under the name that its own main file was kept under. Returns a descriptor or -errno.
 */
int gm_output_create_beside(struct gm_output_path *output, const struct gm_output_path *main,
			    const char *suffix, const void *data, size_t bytes);

/*
 * Removes the file, and the pointer to it, that gm_output_create or gm_output_create_beside has
 * just made.
 */
void gm_output_remove(const struct gm_output_path *output);

/*
 * Moves a live file in $TMPDIR or /tmp to the path that was asked for, at a clean exit. Returns 0
 * or -errno.
 */
int gm_output_settle(struct gm_output_path *output);

#endif
