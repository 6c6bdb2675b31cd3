/*
 * Marks, for the functions of include/gpumemtrace.h (public.c) and for NVTX ranges.
 */
#ifndef GM_INTERPOSE_PUBLIC_H
#define GM_INTERPOSE_PUBLIC_H

#include "store/layout.h"

/*
 * Makes a mark, which is kept until there is a file if there is none yet. `name` is copied. Any
 * thread.
 */
void gm_public_mark(const char *name, enum gm_mark_source source);

#endif
