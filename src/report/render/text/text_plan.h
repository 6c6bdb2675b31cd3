/*
 * A plan as text.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_PLAN_H
#define GM_REPORT_RENDER_TEXT_TEXT_PLAN_H

#include "report/plan/plan.h"
#include "report/render/text/text.h"

void gm_text_plan(struct gm_out *out, const struct gm_plan *plan);

#endif
