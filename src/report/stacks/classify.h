/*
 * The purpose of memory (category), the activity of the program (phase) and the library that asked,
 * by the rules of rules.txt over stacks.
 */
#ifndef GM_REPORT_STACKS_CLASSIFY_H
#define GM_REPORT_STACKS_CLASSIFY_H

#include "report/doc/doc.h"

/* Phase of a stack: "forward", "backward", "optimizer", "loading" or "other". Static storage. */
const char *gm_phase_of(const struct gm_stack *stack);

/* Fills library, category and phase of every site, then `categories[]` and `phases[]`. */
void gm_classify(struct gm_doc *doc);

#endif
