/*
 * What memory is for (category), what the program was doing (phase) and which library asked, by the
 * rules of rules.txt over stacks.
 */
#ifndef GM_REPORT_STACKS_CLASSIFY_H
#define GM_REPORT_STACKS_CLASSIFY_H

#include "report/doc/doc.h"

/* Phase of a stack: "forward", "backward", "optimizer", "loading" or "other". Static storage. */
const char *gm_phase_of(const struct gm_stack *stack);

/* Fills library, category and phase of every site, then `categories[]` and `phases[]`. */
void gm_classify(struct gm_doc *doc);

/* The first frame a person looks for, NULL if the stack has none. */
const struct gm_frame *gm_stack_own_frame(const struct gm_stack *stack);

/* Name of a frame's object without its directory and version tail; NULL for Python frames. */
const char *gm_module_name(const struct gm_frame *frame);

#endif
