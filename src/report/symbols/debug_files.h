/*
 * Finding an object by its build id where the one at its recorded path is not here or is another
 * build: in the system's directory of separate debug files, and from debuginfod servers where
 * DEBUGINFOD_URLS names some.
 */
#ifndef GM_REPORT_SYMBOLS_DEBUG_FILES_H
#define GM_REPORT_SYMBOLS_DEBUG_FILES_H

#include "report/support/memory.h"

/*
 * Opens a file with the symbols of a build id. Returns a descriptor, and its path in the zone; -1
 * if there is none. May ask servers over the network. Not thread-safe.
 */
int gm_debug_file_open(struct gm_zone *zone, const unsigned char *build_id, unsigned bytes,
		       const char **path);

#endif
