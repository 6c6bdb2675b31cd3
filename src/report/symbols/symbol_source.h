/*
 * The files from which the answers about a module come: its own, and the separate file with debug
 * information that libdwfl finds for it. Answers are kept for the very same files only: symbols
 * that are installed later must be seen.
 */
#ifndef GM_REPORT_SYMBOLS_SYMBOL_SOURCE_H
#define GM_REPORT_SYMBOLS_SYMBOL_SOURCE_H

#include "report/support/memory.h"
#include <elfutils/libdwfl.h>
#include <stdbool.h>

struct gm_symbol_source {
	bool no_debug_file; /* none was found */
	const char *text;   /* NULL: not described */
};

/* libdwfl's callbacks: the usual ones, but a file that was not found is not looked for again. */
extern const Dwfl_Callbacks gm_symbol_callbacks;

/* A module of these callbacks has this source, which must outlive it. */
void gm_symbol_source_attach(struct gm_symbol_source *source, Dwfl_Module *module);

/*
 * Sets `text`, in the zone, to what tells the files of a module from others; NULL if that fails.
 * The object is at `path` and open as `fd`, which stays the caller's. Looks for the separate file,
 * over the network too if debuginfod is set up, unless the object has debug information itself.
 */
void gm_symbol_source_describe(struct gm_zone *zone, struct gm_symbol_source *source,
			       const char *path, int fd);

#endif
