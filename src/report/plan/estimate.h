/*
 * The plan by rules, without a run.
 */
#ifndef GM_REPORT_PLAN_ESTIMATE_H
#define GM_REPORT_PLAN_ESTIMATE_H

#include "report/plan/plan.h"

/* The plan by rules, for the batch given or 1. `options->parameters` is set. */
struct gm_plan *gm_plan_estimate(struct gm_zone *zone, const struct gm_plan_options *options);

/* Names of the options' values. */
extern const char *const gm_precision_names[GM_PRECISIONS];
extern const char *const gm_optimizer_names[GM_OPTIMIZERS];

/* Bytes of a number, of the weights in this precision and of the values computed with it. */
double gm_precision_bytes(enum gm_precision precision);
double gm_compute_bytes(enum gm_precision precision);

/* Optimizer states for each trainable parameter, without a master copy. */
double gm_optimizer_bytes(enum gm_optimizer optimizer, bool pure);

#endif
