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
#define MOST_CONTEXTS 1024u

static const struct {
	const char *name, *made, *advice;
} sorts[GM_COST_KINDS] = {
	[GM_COST_CONTEXT] =
		{"contexts", "made",
		 "use the device's primary context (cuDevicePrimaryCtxRetain, which the runtime "
		 "does by itself), or destroy each context when its work is done"},
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

#define LEAST_OF_STREAM (192ull << 10) /* a stream takes 0.5 MiB, or that of one that is gone */

/* Streams that took much less than a stream takes came after others were destroyed. */
static bool reused(const struct gm_cost_record *record)
{
	return record->cost == GM_COST_STREAM && record->bytes >= 0 &&
	       (uint64_t)record->bytes / record->calls < LEAST_OF_STREAM;
}

/* Made all through the run, to its last quarter, and mostly still there when the last was made. */
static bool rises(const struct gm_doc *doc, const struct gm_cost_record *record)
{
	uint64_t end = doc->header->last_event_ns, half;
	unsigned power;

	if (record->calls < LEAST_MADE || reused(record) ||
	    (record->live < record->calls / 2 && record->live_then < record->calls / 2) ||
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
	uint64_t own = record->bytes > 0 ? (uint64_t)record->bytes : 0;
	uint64_t all = record->cost == GM_COST_CONTEXT
			       ? own
			       : taken_by(doc, record->device, record->cost);
	uint64_t bytes = all;
	struct gm_finding *finding;

	if (!sorts[record->cost].name || all < LEAST_BYTES || !rises(doc, record) ||
	    is_lazy(doc, record))
		return;
	if (own >= LEAST_BYTES && own < all)
		bytes = own;
	finding = gm_finding_new(doc, "cost.grow", GM_WARNING, record->device, bytes, GM_NO_SITE);
	finding->title = gm_doc_printf(doc, "ever more %s are %s at %s: they hold %s of the device",
				       sorts[record->cost].name, sorts[record->cost].made,
				       place_of(doc, record->stack), gm_size(doc, bytes));
	finding->evidence = gm_doc_printf(
		doc, "%s; the latest at %.3g s of %.3g s; no allocation call names this memory",
		how_many(doc, record), gm_seconds(record->last_ns), doc->duration_s);
	gm_advise(doc, finding, "%s", sorts[record->cost].advice);
}

/* The pools of one line, of which this is the first, as one; *pools is their number. */
static struct gm_graph_pool pools_of_line(const struct gm_doc *doc, unsigned first, unsigned *pools)
{
	struct gm_graph_pool sum = doc->graph_pools[first];

	*pools = 1;
	for (unsigned i = first + 1; i < doc->graph_pools_count; i++) {
		const struct gm_graph_pool *pool = &doc->graph_pools[i];

		if (pool->root == GM_NONE || pool->device != sum.device || pool->stack != sum.stack)
			continue;
		++*pools;
		sum.captures += pool->captures;
		sum.graphs += pool->graphs;
		sum.live_graphs += pool->live_graphs;
		sum.nodes += pool->nodes;
		sum.executable_bytes += pool->executable_bytes;
		sum.taken_bytes += pool->taken_bytes;
		sum.reserved_bytes += pool->reserved_bytes;
		sum.used_bytes += pool->used_bytes;
	}
	return sum;
}

static bool is_first_pool(const struct gm_doc *doc, unsigned index)
{
	const struct gm_graph_pool *pool = &doc->graph_pools[index];

	for (unsigned i = 0; i < index; i++)
		if (doc->graph_pools[i].root != GM_NONE &&
		    doc->graph_pools[i].device == pool->device &&
		    doc->graph_pools[i].stack == pool->stack)
			return false;
	return pool->root != GM_NONE;
}

static void advise_captures(struct gm_doc *doc, struct gm_finding *finding,
			    const struct gm_graph_pool *sum, unsigned pools)
{
	if (pools > 1)
		gm_advise(doc, finding,
			  "each capture took a pool of its own, whose memory nothing else can use: "
			  "pass one pool to all of them (torch.cuda.graph(graph, pool=...)), or "
			  "drop graphs that are not replayed any more");
	else if (sum->next_bytes != GM_NO_BYTES)
		gm_advise(doc, finding,
			  "each further capture would take about %s, ten about %s, as those after "
			  "the first did",
			  gm_size(doc, sum->next_bytes), gm_size(doc, sum->next_bytes * 10));
	if (!sum->live_graphs && sum->reserved_bytes)
		gm_advise(doc, finding,
			  "none of its graphs is left: torch.cuda.empty_cache() gives the pool's "
			  "idle memory back");
	else if (sum->captures > 1)
		gm_advise(doc, finding,
			  "capture the largest batch first: smaller ones then use its memory "
			  "again; fewer batch sizes take less");
}

/*
 * The bill of graphs that were captured: by the line, and of one pool, whose memory the graphs
 * share, also what each further capture would take.
 */
static void judge_captures(struct gm_doc *doc, unsigned index)
{
	unsigned pools;
	struct gm_graph_pool sum = pools_of_line(doc, index, &pools);
	uint64_t bytes = sum.reserved_bytes + sum.executable_bytes;
	const struct gm_capture_record *first = &doc->captures[sum.list[0]];
	struct gm_finding *finding;

	if (bytes < LEAST_BYTES || !sum.captures)
		return;
	finding = gm_finding_new(doc, "graphs.cost", GM_NOTE, sum.device, bytes, GM_NO_SITE);
	finding->title = gm_doc_printf(
		doc,
		"%llu capture%s at %s hold%s %s of the device: %s in %s private pool%s, %s as "
		"executables",
		(unsigned long long)sum.captures, gm_s(sum.captures), place_of(doc, sum.stack),
		sum.captures == 1 ? "s" : "", gm_size(doc, bytes),
		gm_size(doc, sum.reserved_bytes),
		pools > 1		? gm_doc_printf(doc, "%u", pools)
		: sum.captures == 1	? "its"
					: "one shared",
		gm_s(pools), gm_size(doc, sum.executable_bytes));
	finding->evidence = gm_doc_printf(
		doc,
		"%llu executables of %llu nodes, %llu destroyed; %s of the pool%s in use; the "
		"first capture took %s for its pool, the others %s together",
		(unsigned long long)sum.graphs, (unsigned long long)sum.nodes,
		(unsigned long long)(sum.graphs - sum.live_graphs), gm_size(doc, sum.used_bytes),
		gm_s(pools), gm_size(doc, first->taken_bytes),
		gm_size(doc, sum.taken_bytes - first->taken_bytes));
	advise_captures(doc, finding, &sum, pools);
}

/* Returns the number of executables of private pools' captures, whose bill is the pools'. */
static uint64_t told_by_pools(const struct gm_doc *doc, int device)
{
	uint64_t graphs = 0;

	for (unsigned i = 0; i < doc->graph_pools_count; i++)
		if (doc->graph_pools[i].root != GM_NONE && doc->graph_pools[i].device == device)
			graphs += doc->graph_pools[i].graphs;
	return graphs;
}

/*
 * The bill of other graphs: by line, for each executable and node, and what more of them would
 * take.
 */
static void judge_graphs(struct gm_doc *doc, const struct gm_cost_record *record)
{
	uint64_t bytes = record->bytes > 0 ? (uint64_t)record->bytes : 0;
	struct gm_finding *finding;

	if (record->cost != GM_COST_GRAPH || bytes < LEAST_BYTES || !record->calls ||
	    record->calls <= told_by_pools(doc, record->device))
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

static unsigned contexts_of(const struct gm_doc *doc)
{
	return doc->contexts_count < MOST_CONTEXTS ? doc->contexts_count : MOST_CONTEXTS;
}

/* The contexts of one line as the record of an object, of which this is the first. */
static struct gm_cost_record contexts_of_line(const struct gm_doc *doc, unsigned first)
{
	struct gm_cost_record sum = {.device = doc->contexts[first].device,
				     .cost = GM_COST_CONTEXT,
				     .stack = doc->contexts[first].stack};

	for (unsigned i = first; i < contexts_of(doc); i++) {
		const struct gm_context_record *context = &doc->contexts[i];
		unsigned power;

		if (context->device != sum.device || context->stack != sum.stack || context->green)
			continue;
		power = 63 - (unsigned)__builtin_clzll(++sum.calls);
		if (power < GM_COST_TIMES && sum.calls == 1ull << power)
			sum.times_ns[power] = context->time_ns;
		sum.last_ns = context->time_ns;
		sum.live += context->state == GM_STATE_LIVE;
		sum.ends += context->state != GM_STATE_LIVE;
		if (context->state == GM_STATE_LIVE && context->bytes != GM_NO_BYTES)
			sum.bytes += (int64_t)(context->bytes & INT64_MAX);
	}
	return sum;
}

static bool is_first_of_line(const struct gm_doc *doc, unsigned index)
{
	const struct gm_context_record *context = &doc->contexts[index];

	for (unsigned i = 0; i < index; i++)
		if (doc->contexts[i].device == context->device && !doc->contexts[i].green &&
		    doc->contexts[i].stack == context->stack)
			return false;
	return !context->green;
}

static void judge_contexts(struct gm_doc *doc, int device)
{
	struct gm_finding *finding;
	const char *places = NULL;
	unsigned live = 0, lines = 0;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < contexts_of(doc); i++) {
		struct gm_cost_record sum;
		const char *place;

		if (doc->contexts[i].device != device || !is_first_of_line(doc, i))
			continue;
		sum = contexts_of_line(doc, i);
		judge_growth(doc, &sum);
		if (!sum.live)
			continue;
		live += (unsigned)sum.live;
		bytes += sum.bytes > 0 ? (uint64_t)sum.bytes : 0;
		place = gm_doc_printf(doc, "%llu at %s", (unsigned long long)sum.live,
				      place_of(doc, sum.stack));
		if (++lines <= 4)
			places = places ? gm_doc_printf(doc, "%s; %s", places, place) : place;
	}
	if (live < 2)
		return;
	finding = gm_finding_new(doc, "context.several", GM_WARNING, device, bytes, GM_NO_SITE);
	finding->title = gm_doc_printf(doc, "%u contexts on device %d hold %s by themselves", live,
				       device, gm_size(doc, bytes));
	finding->evidence =
		gm_doc_printf(doc, "made: %s%s", places, lines > 4 ? "; and more" : "");
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
	for (unsigned i = 0; i < doc->graph_pools_count; i++)
		if (is_first_pool(doc, i))
			judge_captures(doc, i);
	for (unsigned i = 0; i < doc->devices_count; i++)
		judge_contexts(doc, doc->devices[i].index);
}
