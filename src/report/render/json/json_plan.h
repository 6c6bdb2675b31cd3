/*
 * A plan as JSON.
 */
#ifndef GM_REPORT_RENDER_JSON_JSON_PLAN_H
#define GM_REPORT_RENDER_JSON_JSON_PLAN_H

#include "report/plan/plan.h"
#include <jansson.h>

/* The value of the document's key `plan`. The caller owns the reference. */
json_t *gm_json_plan(const struct gm_plan *plan);

#endif
