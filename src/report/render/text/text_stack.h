/*
 * A stack as text.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_STACK_H
#define GM_REPORT_RENDER_TEXT_TEXT_STACK_H

#include "report/doc/doc.h"
#include "report/render/text/text.h"

/*
 * A stack, one frame a line, indented: own frames first, then the others, each function once and
 * without plumbing; as it was recorded where out->full.
 */
void gm_print_stack(struct gm_out *out, const struct gm_stack *stack, unsigned indent);

#endif
