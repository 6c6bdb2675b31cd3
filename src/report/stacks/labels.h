/*
 * The origin of memory in one phrase: the user's own line where there is one. Labels of sites that
 * would read the same are told apart by their callers.
 */
#ifndef GM_REPORT_STACKS_LABELS_H
#define GM_REPORT_STACKS_LABELS_H

#include "report/doc/doc.h"

/* True for frames of the user's own code: neither installed, nor a CUDA library, nor plumbing. */
bool gm_frame_own(const struct gm_frame *frame);

/*
 * The frame that names a stack: the innermost own Python frame, else the innermost Python frame,
 * else the innermost own native frame with a name, and so on. NULL for an empty stack.
 */
const struct gm_frame *gm_stack_label_frame(const struct gm_stack *stack);

/*
 * Returns the position of gm_stack_label_frame in the stack, which may hold a frame more than once;
 * 0 if the stack is empty.
 */
unsigned gm_stack_label_index(const struct gm_stack *stack);

/* Moves `index` outwards to the next own frame and returns it; NULL if there is none. */
const struct gm_frame *gm_stack_next_own(const struct gm_stack *stack, unsigned *index);

/* The CUDA library that asked on somebody's behalf: "libcublas.so.13". NULL if none did. */
const char *gm_stack_toolkit(const struct gm_stack *stack);

/* Gives every site's stack its label; after the sites are classified. */
void gm_label_stacks(struct gm_doc *doc);

/* The label of a stack, in the document's zone; a phrase for NULL too. */
const char *gm_stack_label(struct gm_doc *doc, const struct gm_stack *stack);

#endif
