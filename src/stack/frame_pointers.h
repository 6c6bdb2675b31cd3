/*
 * The unwinder that is tried last: it follows saved frame pointers.
 */
#ifndef GM_STACK_FRAME_POINTERS_H
#define GM_STACK_FRAME_POINTERS_H

#include "stack/unwinder.h"

extern const struct gm_unwinder gm_unwinder_frame_pointers;

#endif
