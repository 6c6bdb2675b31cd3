/*
 * Unwinding by rules learnt from the objects' own tables (cfi.c).
 */
#ifndef GM_STACK_CFI_H
#define GM_STACK_CFI_H

#include <stdbool.h>
#include <stdint.h>

#define GM_CFI_MOST_FRAMES 300u /* a walk with more room is right too, but slower */

struct gm_cfi_walk {
	uintptr_t *pc;	      /* return addresses go here, innermost first, gm_cfi_walk's first */
	unsigned max, frames; /* room, and how many there are */
	uintptr_t stop_start, stop_bytes; /* the walk ends at a return address in this range */
};

/* False if this processor is not supported. */
bool gm_cfi_init(void);

/*
 * Walks the calling thread's stack. True if it came to the end, the room's end or the range; false
 * if it met a frame that it cannot see through: then `frames` are right, but not all.
 */
bool gm_cfi_walk(struct gm_cfi_walk *walk);

/* Code may have changed under its addresses (something was unloaded): learn everything anew. */
void gm_cfi_forget(void);

/* In the child of a fork: threads that were in a walk are not there any more. */
void gm_cfi_reset(void);

#endif
