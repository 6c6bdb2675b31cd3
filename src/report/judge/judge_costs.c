/*
 * Judges of the objects that take memory of the device beside allocations: streams, modules,
 * executable graphs, contexts. cost.grow: one line makes ever more of them. graphs.cost: the memory
 * that captured graphs hold. context.several: a device with more than one context.
 */
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"
#include "report/stacks/stacks.h"
#include "report/support/format.h"
#include <string.h>

#define LEAST_BYTES  (4ull << 20) /* two pages: less is rounding */
#define LEAST_MADE   8
#define LATE_SHARE   4 /* the last was made in the last quarter of the run */
#define SPREAD_SHARE 8 /* and the later half over an eighth of the run at least */

static const struct {
	const char *name, *made, *advice;
} sorts[GM_COST_KINDS] = {
	[GM_COST_MODULE] =
		{"modules", "loaded",
		 "unload what is no longer used (cuModuleUnload, cuLibraryUnload), and keep "
		 "compiled kernels by their source instead of compiling them again"},
	[GM_COST_STREAM] =
		{"streams", "made",
		 "make the streams once and use them again: each takes some 0.5 MiB, and "
		 "the driver keeps it for later streams when one is destroyed"},
	[GM_COST_GRAPH] =
		{"executable graphs", "instantiated",
		 "keep one executable for each shape and update it (cudaGraphExecUpdate) "
		 "instead of instantiating it again; a destroyed one's memory is used for "
		 "later graphs, and does not go back to the device"},
};

/*
 * Returns the bytes that a kind of cost took on a device in all. Code that is loaded lazily is
 * taken by launches.
 */
static uint64_t taken_by(const struct gm_doc *doc, int device, unsigned cost)
{
	int64_t bytes = 0;

	for (unsigned i = 0; i < doc->costs_count; i++) {
		const struct gm_cost_record *record = &doc->costs[i];

		if (record->device == device &&
		    (record->cost == cost ||
		     (cost == GM_COST_MODULE && record->cost == GM_COST_LAUNCH)) &&
		    __builtin_add_overflow(bytes, record->bytes, &bytes))
			return 0;
	}
	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Made all through the run, to its last quarter, and mostly still there. */
static bool rises(const struct gm_doc *doc, const struct gm_cost_record *record)
{
	uint64_t end = doc->header->last_event_ns, half;
	unsigned power;

	if (record->calls < LEAST_MADE || record->live < record->calls / 2 ||
	    record->last_ns > end || record->last_ns < end - end / LATE_SHARE)
		return false;
	power = 63 - (unsigned)__builtin_clzll(record->calls);
	half = record->times_ns[(power < GM_COST_TIMES ? power : GM_COST_TIMES) - 1];
	return half <= record->last_ns && record->last_ns - half >= end / SPREAD_SHARE;
}

/*
 * Libraries of NVIDIA's whose kernels are compiled in advance. They load each of their modules at
 * its first use and keep it, so the modules are as many as the library has. cuFFT, cuSPARSE,
 * cuTENSOR and TensorRT compile or link code at run time, and their modules have no such end.
 */
static const char *const precompiled[] = {"libcublas", "libcusolver", "libcurand", "libcudnn"};

/* Modules that a library loads lazily, each once. */
static bool is_lazy(struct gm_doc *doc, const struct gm_cost_record *record)
{
	const char *library = record->cost == GM_COST_MODULE
				      ? gm_stack_toolkit(gm_doc_stack(doc, record->stack))
				      : NULL;

	if (!library || strstr(library, "runtime_compiled"))
		return false;
	for (unsigned i = 0; i < sizeof(precompiled) / sizeof(precompiled[0]); i++)
		if (strncmp(library, precompiled[i], strlen(precompiled[i])) == 0)
			return true;
	return false;
}

/* "3 made at step (train.py:12), all of them still there" */
static const char *how_many(struct gm_doc *doc, const struct gm_cost_record *record)
{
	return gm_doc_printf(doc, "%llu %s, %llu destroyed", (unsigned long long)record->calls,
			     sorts[record->cost].made, (unsigned long long)record->ends);
}

static const char *place_of(struct gm_doc *doc, uint32_t stack)
{
	return gm_stack_label(doc, gm_doc_stack(doc, stack));
}

static void judge_growth(struct gm_doc *doc, const struct gm_cost_record *record)
{
	uint64_t all = taken_by(doc, record->device, record->cost), bytes = all;
	struct gm_finding *finding;

	if (!sorts[record->cost].name || all < LEAST_BYTES || !rises(doc, record) ||
	    is_lazy(doc, record))
		return;
	if (record->bytes >= (int64_t)LEAST_BYTES && (uint64_t)record->bytes < all)
		bytes = (uint64_t)record->bytes;
	finding = gm_finding_new(doc, "cost.grow", GM_WARNING, record->device, bytes, GM_NO_SITE);
	finding->title = gm_doc_printf(doc, "ever more %s are %s at %s: they hold %s of the device",
				       sorts[record->cost].name, sorts[record->cost].made,
				       place_of(doc, record->stack), gm_size(doc, bytes));
	finding->evidence = gm_doc_printf(
		doc, "%s; the latest at %.3g s of %.3g s; no allocation call names this memory",
		how_many(doc, record), gm_seconds(record->last_ns), doc->duration_s);
	gm_advise(doc, finding, "%s", sorts[record->cost].advice);
}

/* The bill of graphs: by line, for each executable and node, and what more of them would take. */
static void judge_graphs(struct gm_doc *doc, const struct gm_cost_record *record)
{
	uint64_t bytes = record->bytes > 0 ? (uint64_t)record->bytes : 0;
	struct gm_finding *finding;

	if (record->cost != GM_COST_GRAPH || bytes < LEAST_BYTES || !record->calls)
		return;
	finding = gm_finding_new(doc, "graphs.cost", GM_NOTE, record->device, bytes, GM_NO_SITE);
	finding->title = gm_doc_printf(
		doc, "%llu executable graph%s of %s hold %s of the device, without their pools",
		(unsigned long long)record->calls, gm_s(record->calls),
		place_of(doc, record->stack), gm_size(doc, bytes));
	finding->evidence = gm_doc_printf(
		doc, "%s; %s for each, %.0f B a node", how_many(doc, record),
		gm_size(doc, bytes / record->calls),
		record->nodes ? (double)bytes / (double)record->nodes : 0.0);
	if (record->calls > 2)
		gm_advise(doc, finding, "ten more graphs of this size would take about %s",
			  gm_size(doc, bytes / record->calls * 10));
	gm_advise(
		doc, finding,
		"fewer nodes take less (fused kernels, fewer captured batch sizes); destroying an "
		"executable keeps its memory for later graphs of the process");
}

static void judge_contexts(struct gm_doc *doc, int device)
{
	struct gm_finding *finding;
	const char *places = NULL;
	unsigned live = 0;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < doc->contexts_count; i++) {
		const struct gm_context_record *context = &doc->contexts[i];
		const char *place;

		if (context->device != device || context->green || context->state != GM_STATE_LIVE)
			continue;
		live++;
		bytes += context->bytes == GM_NO_BYTES ? 0 : context->bytes;
		place = place_of(doc, context->stack);
		if (live <= 4)
			places = places ? gm_doc_printf(doc, "%s; %s", places, place) : place;
	}
	if (live < 2)
		return;
	finding = gm_finding_new(doc, "context.several", GM_WARNING, device, bytes, GM_NO_SITE);
	finding->title = gm_doc_printf(doc, "%u contexts on device %d hold %s by themselves", live,
				       device, gm_size(doc, bytes));
	finding->evidence =
		gm_doc_printf(doc, "made at %s%s", places, live > 4 ? "; and more" : "");
	gm_advise(
		doc, finding,
		"one context for each process and device is enough: use the primary one "
		"(cuDevicePrimaryCtxRetain), as the runtime does; memory of one context cannot be "
		"used in another's streams without care");
}

void gm_judge_costs(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->costs_count; i++) {
		if (doc->costs[i].cost >= GM_COST_KINDS)
			continue;
		judge_growth(doc, &doc->costs[i]);
		judge_graphs(doc, &doc->costs[i]);
	}
	for (unsigned i = 0; i < doc->devices_count; i++)
		judge_contexts(doc, doc->devices[i].index);
}
