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

/* Findings about sites of a sampled recording are kept if their figures exceed twice the standard
 * error, and say it. */
static void drop_uncertain(struct gm_doc *doc)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < doc->findings_count; i++) {
		struct gm_finding *finding = &doc->findings[i];
		uint64_t error = 0;

		if (finding->site < doc->sites_count && finding->bytes != GM_NO_BYTES)
			error = gm_site_error(doc, &doc->sites[finding->site], finding->bytes);
		if (error && finding->bytes <= 2 * error)
			continue;
		if (error)
			finding->evidence =
				gm_doc_printf(doc, "%s; an estimate with a standard error of %s",
					      finding->evidence, gm_size(doc, error));
		doc->findings[kept++] = *finding;
	}
	doc->findings_count = kept;
}

void gm_judge(struct gm_doc *doc)
{
	for (size_t i = 0; i < sizeof(judges) / sizeof(judges[0]); i++)
		judges[i](doc);
	if (doc->header->sample_bytes)
		drop_uncertain(doc);
	gm_remove_contradictions(doc);
	gm_sort_findings(doc->findings, doc->findings_count);
}
