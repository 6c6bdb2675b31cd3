/*
 * coverage: the driver's figure exceeds what is tracked and the context by over 5 %.
 * coverage.namespace: libcuda was loaded into another linker namespace.
 * ledger.unexplained: that difference rises over the run while tracked bytes do not.
 */
#include "report/judge/findings.h"
#include "report/judge/growth.h"
#include "report/judge/internal.h"

#define COVERAGE_PERCENT 5
#define LEAST_BYTES	 (4ull << 20) /* two pages: less is rounding */
#define MANY_SAMPLES	 8 /* of a file without a history: a rise over that many is one */
#define REASON_MARK	 3 /* `reason` of gm_ledger_record */

static const char *const cost_names[GM_COST_KINDS] = {"contexts",
						      "modules loaded",
						      "stack limit",
						      "malloc heap limit",
						      "first launches of kernels",
						      "streams",
						      "executable graphs"};

/* Names, in words, the other costs that were measured. */
static const char *costs(struct gm_doc *doc, int device)
{
	const char *text = NULL;

	for (unsigned kind = GM_COST_MODULE; kind < GM_COST_KINDS; kind++) {
		int64_t bytes = 0;
		bool seen = false;

		for (unsigned i = 0; i < doc->costs_count; i++) {
			const struct gm_cost_record *cost = &doc->costs[i];

			if (cost->device != device || cost->cost != kind)
				continue;
			seen = true;
			if (__builtin_add_overflow(bytes, cost->bytes, &bytes))
				bytes = INT64_MAX;
		}
		if (seen)
			text = gm_doc_printf(
				doc, "%s%s%s %s%s", text ? text : "", text ? ", " : "",
				cost_names[kind], bytes < 0 ? "-" : "",
				gm_size(doc, bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes));
	}
	return text ? text : "no module, stack or heap limit changed the driver's figure";
}

/* Marks are where a program repeats itself: with some of them, only their samples are compared. */
static bool by_marks(const struct gm_ledger *ledger)
{
	unsigned marks = 0;

	for (unsigned i = 0; i < ledger->history_count; i++)
		marks += ledger->history[i].reason == REASON_MARK;
	return marks >= GM_WINDOWS / 2;
}

/* The window of a sample: of equal stretches of time, or its number among those at marks. */
static unsigned window_of(const struct gm_ledger *ledger, unsigned sample, bool marks)
{
	uint64_t first = ledger->history[0].time_ns, time = ledger->history[sample].time_ns;
	uint64_t last = ledger->history[ledger->history_count - 1].time_ns;
	unsigned before = 0, all = 0;

	if (!marks)
		return (unsigned)((unsigned __int128)(time - first) * GM_WINDOWS /
				  (last - first + 1));
	for (unsigned i = 0; i < ledger->history_count; i++) {
		before += i < sample && ledger->history[i].reason == REASON_MARK;
		all += ledger->history[i].reason == REASON_MARK;
	}
	return (unsigned)((uint64_t)before * (all < GM_WINDOWS ? all : GM_WINDOWS) / all);
}

/* The samples as windows; returns how many have some. A floor of 0 is a floor too. */
static unsigned gather(const struct gm_ledger *ledger, struct gm_window *windows)
{
	struct gm_window all[GM_WINDOWS];
	bool used[GM_WINDOWS] = {false}, marks = by_marks(ledger);
	unsigned count = 0;

	for (unsigned i = 0; i < ledger->history_count; i++) {
		int64_t unexplained = ledger->history[i].unexplained_bytes;
		uint64_t bytes = unexplained > 0 ? (uint64_t)unexplained + 1 : 1;
		unsigned w;

		if (marks && ledger->history[i].reason != REASON_MARK)
			continue;
		w = window_of(ledger, i, marks);
		if (!used[w])
			all[w] = (struct gm_window){UINT64_MAX, 0, 0};
		used[w] = true;
		all[w].min_bytes = bytes < all[w].min_bytes ? bytes : all[w].min_bytes;
		all[w].max_bytes = bytes > all[w].max_bytes ? bytes : all[w].max_bytes;
		all[w].last_bytes = bytes;
	}
	for (unsigned w = 0; w < GM_WINDOWS; w++)
		if (used[w])
			windows[count++] = all[w];
	return count;
}

static const char *signed_size(struct gm_doc *doc, int64_t bytes)
{
	return bytes < 0 ? gm_doc_printf(doc, "-%s", gm_size(doc, 0 - (uint64_t)bytes))
			 : gm_size(doc, (uint64_t)bytes);
}

/*
 * Says, in words, by how much the unexplained part rises from one mark to the next; "" if marks do
 * not tell.
 */
static const char *pace(struct gm_doc *doc, const struct gm_ledger *ledger)
{
	const struct gm_ledger_record *first = NULL, *last = NULL;
	unsigned marks = 0;

	for (unsigned i = 0; i < ledger->history_count; i++) {
		if (ledger->history[i].reason != REASON_MARK)
			continue;
		first = first ? first : &ledger->history[i];
		last = &ledger->history[i];
		marks++;
	}
	if (marks < 3 || last->unexplained_bytes <= first->unexplained_bytes)
		return "";
	return gm_doc_printf(doc, ", %s from mark to mark",
			     gm_size(doc, ((uint64_t)last->unexplained_bytes -
					   (uint64_t)first->unexplained_bytes) /
						  (marks - 1)));
}

/*
 * A rise that goes on is a warning. What came once, with the first kernels and libraries, is only
 * told where the samples are too few to say that it does not go on.
 */
static void judge_growth(struct gm_doc *doc, const struct gm_ledger *ledger)
{
	const struct gm_ledger_record *record = &ledger->record;
	uint64_t growth = ledger->unexplained_growth_bytes;
	struct gm_window windows[GM_WINDOWS];
	unsigned count = gather(ledger, windows);
	enum gm_growth verdict =
		count ? gm_judge_growth(windows, NULL, count, GM_WARMUP_WINDOWS).growth
		      : GM_GROWTH_TOO_FEW;
	struct gm_finding *finding;

	if (growth == GM_NO_BYTES || growth < LEAST_BYTES || verdict == GM_GROWTH_NONE)
		return;
	finding = gm_finding_new(doc, "ledger.unexplained",
				 verdict == GM_GROWTH_RISES ||
						 (!count && record->samples >= MANY_SAMPLES)
					 ? GM_WARNING
					 : GM_NOTE,
				 record->device, growth, GM_NO_SITE);
	finding->title =
		gm_doc_printf(doc, "the driver's figure rose by %s beyond what was allocated",
			      gm_size(doc, growth));
	finding->evidence =
		gm_doc_printf(doc,
			      "unexplained: %s at first, %s at the end, over %u samples%s; "
			      "looked at: %s",
			      signed_size(doc, record->unexplained_first_bytes),
			      signed_size(doc, record->unexplained_bytes), record->samples,
			      pace(doc, ledger), costs(doc, record->device));
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
	uint64_t missing = record->unexplained_bytes > 0 ? (uint64_t)record->unexplained_bytes : 0;

	if (record->process_used_bytes == GM_NO_BYTES || missing < LEAST_BYTES ||
	    missing <= record->process_used_bytes / 100 * COVERAGE_PERCENT)
		return;
	finding = gm_finding_new(doc, "coverage", GM_WARNING, record->device, missing, GM_NO_SITE);
	finding->title =
		gm_doc_printf(doc, "%s of the %s that the driver reports are not explained",
			      gm_size(doc, missing), gm_size(doc, record->process_used_bytes));
	finding->evidence =
		gm_doc_printf(doc, "%s tracked, %s context and code; by %s",
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

static void judge_namespaces(struct gm_doc *doc)
{
	uint32_t number = doc->header->other_libcudas;
	struct gm_finding *finding;

	if (!number)
		return;
	finding = gm_finding_new(doc, "coverage.namespace", GM_WARNING, GM_HOST, 0, GM_NO_SITE);
	finding->title = gm_doc_printf(doc, "the calls of %u other %s of libcuda are not recorded",
				       number, number == 1 ? "copy" : "copies");
	finding->evidence =
		gm_doc_printf(doc, "loaded by dlmopen, in %u linker %s which no preload reaches",
			      number, number == 1 ? "namespace" : "namespaces");
	gm_advise(
		doc, finding,
		"have the program load the library that uses CUDA by dlopen, which keeps it in the "
		"program's namespace");
}

void gm_judge_coverage(struct gm_doc *doc)
{
	judge_namespaces(doc);
	for (unsigned i = 0; i < doc->ledger_count; i++) {
		judge_growth(doc, &doc->ledger[i]);
		judge_coverage(doc, &doc->ledger[i]);
	}
}
