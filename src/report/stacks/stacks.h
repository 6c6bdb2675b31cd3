/*
 * The stacks of a document. Frames are symbolized when a stack is first asked for, each frame
 * record once.
 */
#ifndef GM_REPORT_STACKS_STACKS_H
#define GM_REPORT_STACKS_STACKS_H

#include "report/doc/doc.h"

/* The stack of a GM_TABLE_STACKS number, with its frames; NULL for GM_NONE. */
const struct gm_stack *gm_doc_stack(struct gm_doc *doc, uint32_t stack);

#endif
