/*
 * CUDA's own frames at the inner end of a stack.
 */
#ifndef GM_REPORT_STACKS_ENTRY_FRAMES_H
#define GM_REPORT_STACKS_ENTRY_FRAMES_H

#include "report/doc/doc.h"

/*
 * Returns the number of a stack's innermost frames that are CUDA's entry points or lie below them
 * in the same object: allocation-shim frames, which no stack shows. 0 if nothing would be left.
 */
unsigned gm_entry_frames(const struct gm_stack *stack);

#endif
