/*
 * coverage: the driver's figure exceeds what is tracked and the context by over 5 %.
 * ledger.unexplained: that difference rises over the run while tracked bytes do not.
 */
#include "report/judge.h"
#include "report/format.h"

#define COVERAGE_PERCENT 5
#define LEAST_BYTES	 (4ull << 20) /* two pages: less is rounding */

static const char *const cost_names[GM_COST_KINDS] = {"contexts", "modules loaded", "stack limit",
						      "malloc heap limit", "first launches of kernels"};

/* What else was looked at, in words. */
static const char *costs(struct gm_doc *doc, int device)
{
	const char *text = NULL;

	for (unsigned i = 0; i < doc->costs_count; i++) {
		const struct gm_cost_record *cost = &doc->costs[i];

		if (cost->device != device || cost->cost >= GM_COST_KINDS ||
		    cost->cost == GM_COST_CONTEXT)
			continue;
		text = gm_say(
			doc, "%s%s%s %s%s", text ? text : "", text ? ", " : "",
			cost_names[cost->cost], cost->bytes < 0 ? "-" : "",
			gm_size(doc, (uint64_t)(cost->bytes < 0 ? -cost->bytes : cost->bytes)));
	}
	return text ? text : "no module, stack or heap limit changed the driver's figure";
}

static void judge_growth(struct gm_doc *doc, const struct gm_ledger *ledger)
{
	const struct gm_ledger_record *record = &ledger->record;
	uint64_t growth = ledger->unexplained_growth_bytes;
	struct gm_finding *finding;

	if (growth == GM_NO_BYTES || growth < LEAST_BYTES)
		return;
	finding =
		gm_find(doc, "ledger.unexplained", GM_WARNING, record->device, growth, GM_NO_SITE);
	finding->title = gm_say(doc, "the driver's figure rose by %s beyond what was allocated",
				gm_size(doc, growth));
	finding->evidence = gm_say(doc,
				   "unexplained: %s at first, %s at the end, over %u samples; "
				   "looked at: %s",
				   gm_size(doc, record->unexplained_first_bytes),
				   gm_size(doc, record->unexplained_bytes), record->samples,
				   costs(doc, record->device));
	gm_advise(
		doc, finding,
		"no allocation call took it: look for modules loaded in a loop, local "
		"memory of kernels, in-kernel malloc and printf buffers, libraries that keep work "
		"areas, a driver's own growth");
}

static void judge_coverage(struct gm_doc *doc, const struct gm_ledger *ledger)
{
	const struct gm_ledger_record *record = &ledger->record;
	struct gm_finding *finding;

	if (record->unexplained_bytes == GM_NO_BYTES || record->process_used_bytes == GM_NO_BYTES ||
	    record->unexplained_bytes < LEAST_BYTES ||
	    record->unexplained_bytes <= record->process_used_bytes / 100 * COVERAGE_PERCENT)
		return;
	finding = gm_find(doc, "coverage", GM_WARNING, record->device, record->unexplained_bytes,
			  GM_NO_SITE);
	finding->title = gm_say(doc, "%s of the %s that the driver reports are not explained",
				gm_size(doc, record->unexplained_bytes),
				gm_size(doc, record->process_used_bytes));
	finding->evidence = gm_say(doc, "%s tracked, %s context and code; by %s",
				   gm_size(doc, record->tracked_physical_bytes),
				   gm_size(doc, record->context_bytes + record->code_bytes),
				   record->source == GM_LEDGER_NVML_PROCESS
					   ? "NVML's figure for the process"
					   : "the device's figure since before the first context");
	gm_advise(doc, finding,
		  "if a library links CUDA privately or is loaded with RTLD_DEEPBIND, run with "
		  "GPUMEMTRACE_BACKEND=cupti, which sees every call of the driver");
	if (record->source == GM_LEDGER_DEVICE_DELTA)
		gm_advise(doc, finding,
			  "the figure is the whole device's: other processes that started "
			  "later count in it");
}

void gm_judge_coverage(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->ledger_count; i++) {
		judge_growth(doc, &doc->ledger[i]);
		judge_coverage(doc, &doc->ledger[i]);
	}
}
