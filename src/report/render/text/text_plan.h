/*
 * A plan as text and as JSON.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_PLAN_H
#define GM_REPORT_RENDER_TEXT_TEXT_PLAN_H

#include "report/plan/plan.h"
#include "report/render/text/text.h"
#include <jansson.h>

void gm_text_plan(struct gm_out *out, const struct gm_plan *plan);

/* The value of the document's key `plan`. The caller owns the reference. */
json_t *gm_json_plan(const struct gm_plan *plan);

#endif
