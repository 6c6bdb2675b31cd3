/*
 * Names of C++ and Rust as people write them.
 */
#ifndef GM_REPORT_SYMBOLS_DEMANGLE_H
#define GM_REPORT_SYMBOLS_DEMANGLE_H

#include "report/support/memory.h"

/* A readable form of a mangled C++ name, in the zone; the name itself if it is none. */
const char *gm_demangle(struct gm_zone *zone, const char *name);

#endif
