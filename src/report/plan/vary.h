/*
 * Other ways to train or run.
 */
#ifndef GM_REPORT_PLAN_VARY_H
#define GM_REPORT_PLAN_VARY_H

#include "report/plan/plan.h"

/* Computes the change that each other way to train or run would bring. */
void gm_plan_vary(struct gm_zone *zone, struct gm_plan *plan,
		  const struct gm_plan_options *options);

#endif
