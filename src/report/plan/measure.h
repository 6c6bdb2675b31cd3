/*
 * The plan of measured runs.
 */
#ifndef GM_REPORT_PLAN_MEASURE_H
#define GM_REPORT_PLAN_MEASURE_H

#include "report/plan/plan.h"

/*
 * The plan of measured runs, docs[i] with batches[i]; all in the zone. NULL, and a sentence in
 * `error`, if the runs do not tell.
 */
struct gm_plan *gm_plan_measure(struct gm_zone *zone, struct gm_doc **docs, const uint64_t *batches,
				unsigned count, const struct gm_plan_options *options, char *error,
				size_t error_bytes);

#endif
