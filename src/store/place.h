/*
 * Where the output file lies: directories, names that are taken, network filesystems. Used by the
 * writer alone.
 */
#ifndef GM_STORE_PLACE_H
#define GM_STORE_PLACE_H

#include "store/layout.h"
#include <stdbool.h>

#define GM_PATH_BYTES 4096

struct gm_place {
	char path[GM_PATH_BYTES];	/* the live file */
	char wanted[GM_PATH_BYTES];	/* where it moves at a clean exit; "" if path is it already */
};

/*
 * Creates the file for `path`: makes missing directories (0700), keeps an existing finished file as
 * NAME.old1 and on, appends .PID to a name that a live process owns, and on a network filesystem, or one
 * that copies on write (where another takes it), puts the live file in $TMPDIR or /tmp with a pointer at
 * `path`. Mode 0600, links are not followed. Returns a descriptor open for reading and writing, or -errno.
 */
int gm_place_create(struct gm_place *place, const char *path);

/*
 * Creates the file named as `main`'s with `suffix` after it, with these first bytes, on the same disk and
 * by the same rules; an old one of that name is kept, and follows its own main file when that is kept
 * under another name. Returns a descriptor or -errno.
 */
int gm_place_create_beside(struct gm_place *place, const struct gm_place *main, const char *suffix,
			   const void *data, size_t bytes);

/* Removes the file, and the pointer to it, that gm_place_create or _beside has just made. */
void gm_place_remove(const struct gm_place *place);

/* After a clean exit: moves a live file in $TMPDIR or /tmp to the place it was wanted at. 0 or -errno. */
int gm_place_settle(struct gm_place *place);

/*
 * A number for this host, by its name; never 0. Containers have names of their own, and so process
 * numbers of their own.
 */
uint64_t gm_machine(void);

/* Start time of a process in clock ticks (field 22 of /proc/PID/stat), 0 if it cannot be read. */
uint64_t gm_process_start_ticks(int pid);

#endif
