/*
 * Marks and ranges, for the functions of include/gpumemtrace.h (public.c) and for NVTX.
 */
#ifndef GM_INTERPOSE_PUBLIC_H
#define GM_INTERPOSE_PUBLIC_H

#include "track/named_ranges.h"

/*
 * Makes a mark, which is kept until there is a file if there is none yet. `name` is copied. Any
 * thread.
 */
void gm_public_mark(const char *name, enum gm_mark_source source);

/*
 * These do as the functions of track/named_ranges.h. Any thread; a signal handler may record
 * nothing.
 */
int gm_public_range_push(const struct gm_range_name *name);
int gm_public_range_pop(uint16_t domain_number, bool *marked);
uint64_t gm_public_range_start(const struct gm_range_name *name);
bool gm_public_range_end(uint64_t id);

#endif
