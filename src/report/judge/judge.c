/*
 * The table of judges.
 */
#include "report/judge/judge.h"
#include "report/judge/findings.h"
#include "report/judge/internal.h"

static void (*const judges[])(struct gm_doc *doc) = {
	gm_judge_ooms,	   gm_judge_leaks, gm_judge_errors,  gm_judge_holes,
	gm_judge_pressure, gm_judge_usage, gm_judge_devices, gm_judge_coverage,
	gm_judge_costs,	   gm_judge_pools, gm_judge_nccl,    gm_judge_garbage,
};

void gm_judge(struct gm_doc *doc)
{
	for (size_t i = 0; i < sizeof(judges) / sizeof(judges[0]); i++)
		judges[i](doc);
	gm_remove_contradictions(doc);
	gm_sort_findings(doc->findings, doc->findings_count);
}
