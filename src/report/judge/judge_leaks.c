/*
 * leak.grow, a finding for each leak (leaks.h); leak.exit and leak.pinned, one for each site; the
 * largest first; and the sums of `leaks`. What a suppression matches is no finding.
 */
#include "report/doc/enum_names.h"
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/judge/leaks.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"
#include "account/kinds.h"
#include <stdlib.h>
#include <string.h>

#define MAX_LEAKS 20 /* findings of one kind; the rest is told by number */

static bool is_host(const struct gm_site *site)
{
	return gm_kind_on_host(site->record.kind);
}

/* A device's memory is told once: by PyTorch's blocks where there are some, else by the driver's
 * level. */
static bool is_told(const struct gm_doc *doc, const struct gm_site *site)
{
	if (site->record.level != GM_LEVEL_DRIVER)
		return site->record.level == GM_LEVEL_TORCH;
	return gm_kind_owned(site->record.kind) && (!doc->torch || is_host(site));
}

static void sum_leaks(struct gm_doc *doc)
{
	doc->cached_bytes = doc->teardown_bytes = doc->teardown_count = 0;
	doc->exit_bytes = doc->exit_count = doc->clean_exit ? 0 : GM_NO_BYTES;
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		if (site->hidden)
			continue;
		if (site->verdict == GM_CACHED)
			doc->cached_bytes += site->record.live_bytes;
		if (is_told(doc, site)) {
			doc->teardown_bytes += site->work_bytes - site->record.live_bytes;
			doc->teardown_count += site->work_count - site->record.live_count;
		}
		if (doc->clean_exit) {
			doc->exit_bytes += site->exit_bytes;
			doc->exit_count += site->exit_count;
		}
	}
	/* The readable part of a damaged file can show leaks; that it shows none says nothing. */
	if (gm_doc_lacks(doc, GM_TABLE_SITES) && !doc->exit_count)
		doc->exit_bytes = doc->exit_count = GM_NO_BYTES;
}

static bool has_python(const struct gm_stack *stack)
{
	for (unsigned i = 0; stack && i < stack->count; i++)
		if (gm_stack_frame(stack, i)->python)
			return true;
	return false;
}

/*
 * Names what kept most of the site's memory when holders were looked for. False if nobody looked,
 * or nothing was found.
 */
static bool name_holder(struct gm_doc *doc, struct gm_finding *finding, uint32_t site)
{
	const struct gm_holder *holder = NULL;
	const char *chain = "", *when = "";
	char count[GM_FORMAT_BYTES], at[GM_FORMAT_BYTES];

	for (unsigned i = 0; i < doc->holders_count && !holder; i++)
		if (doc->holders[i].site == site && doc->holders[i].chain_count > 1)
			holder = &doc->holders[i]; /* the largest comes first */
	if (!holder)
		return false;
	for (unsigned i = 0; i + 1 < holder->chain_count; i++) /* the last link is the block */
		chain = gm_doc_printf(doc, "%s%s%s", chain, i ? " \u2192 " : "", holder->chain[i]);
	if (doc->holders_ns != GM_NO_BYTES)
		when = gm_doc_printf(doc, " at %s",
				     gm_format_time(at, gm_seconds(doc->holders_ns)));
	gm_advise(doc, finding, "%s %s in %s block%s%s: %s%s",
		  holder->garbage ? "gc.collect() would have freed" : "what kept",
		  gm_size(doc, holder->bytes), gm_format_count(count, holder->blocks),
		  gm_s(holder->blocks), when, chain,
		  holder->complete ? "" : " (not complete: see holders)");
	return true;
}

/* Advice where nobody looked for holders. */
static const char *how_to_search(const struct gm_site *site)
{
	if (site->record.level == GM_LEVEL_TORCH)
		return "look for what keeps a reference to it: a list of losses or outputs "
		       "that still hold their graph (append loss.item() or .detach()), a cache "
		       "without a limit, an exception's traceback, a closure";
	if (has_python(site->stack))
		return "look for what keeps a reference to it: a list or dictionary that is "
		       "only added to, a cache without a limit, an exception's traceback, a "
		       "closure";
	return "free it when its owner goes; look for a pointer that is overwritten "
	       "or a release callback that is not set";
}

static void advise_leak(struct gm_doc *doc, struct gm_finding *finding, const struct gm_site *site)
{
	const struct gm_site_figures *record = &site->record;

	if (gm_site_is_overflow(site)) {
		gm_advise(doc, finding,
			  "raise GPUMEMTRACE_MAX_FILE, or free disk space, and run it again: then "
			  "the file names each place");
		return;
	}
	if (record->failed_frees)
		gm_advise(doc, finding,
			  "%u free%s of this memory failed and %s not looked at; see errors",
			  record->failed_frees, gm_s(record->failed_frees),
			  record->failed_frees == 1 ? "was" : "were");
	if (record->kind == GM_KIND_REGISTERED)
		gm_advise(doc, finding,
			  "unregister it (cudaHostUnregister) when the transfer is done");
	else if (record->kind == GM_KIND_PINNED)
		gm_advise(doc, finding,
			  "pinned host memory: give a queue of buffers a limit and use them again, "
			  "or "
			  "free them when the copy is done");
	else if (!name_holder(doc, finding, (uint32_t)(site - doc->sites)))
		gm_advise(doc, finding, "%s", how_to_search(site));
	if (record->frees == 0 && record->allocations > 1 && !record->failed_frees &&
	    site->verdict != GM_GROW)
		gm_advise(doc, finding,
			  "none of its %llu allocations was ever freed: the release is "
			  "missing, not late",
			  (unsigned long long)record->allocations);
}

static const char *memory_name(const struct gm_site_figures *record)
{
	return record->level == GM_LEVEL_DRIVER ? gm_kind_name(record->kind)
						: gm_level_title(record->level);
}

/* ---- growth ---- */

/* "forward (model.py), 100 sites": the function alone where its lines are many. */
static const char *place_of(struct gm_doc *doc, const struct gm_leak *leak)
{
	const struct gm_stack *stack = doc->sites[leak->site].stack;
	const struct gm_frame *frame = gm_stack_label_frame(stack);
	const char *file;

	if (gm_grew_in_backward(&doc->sites[leak->site]))
		return gm_doc_printf(doc, "backward passes: %s%s", gm_stack_label(doc, stack),
				     leak->sites_count == 1 ? "" : " and others");
	if (leak->sites_count == 1)
		return gm_stack_label(doc, stack);
	if (!frame || !frame->function)
		return gm_doc_printf(doc, "%s and %u other sites", gm_stack_label(doc, stack),
				     leak->sites_count - 1);
	file = frame->file ? frame->file : frame->module;
	file = file && strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	return gm_doc_printf(doc, "%s (%s), %u sites", frame->function, file ? file : "?",
			     leak->sites_count);
}

/*
 * Memory that is left on the device beyond the context and the most that was used of it;
 * GM_NO_BYTES: it is not known, or memory ran out and none was left.
 */
static uint64_t room_on(const struct gm_doc *doc, int device)
{
	const struct gm_device *found = gm_doc_device(doc, device);
	const struct gm_level_record *level = gm_doc_level(doc, device, GM_LEVEL_DRIVER);
	uint64_t limit = gm_device_limit(found), used;

	for (unsigned i = 0; i < doc->ooms_count; i++)
		if (doc->ooms[i].record.device == device)
			return GM_NO_BYTES;
	if (device < 0 || limit == GM_NO_BYTES || !level)
		return GM_NO_BYTES;
	used = level->physical_peak_bytes;
	if (found->record.context_bytes != GM_NO_BYTES &&
	    __builtin_add_overflow(used, found->record.context_bytes, &used))
		return GM_NO_BYTES;
	return used > limit ? GM_NO_BYTES : limit - used;
}

/* "+1.00 MiB each time, every 2.0 ms; the device is full after about 2,900 more (6.1 s)" */
static const char *rate_of(struct gm_doc *doc, const struct gm_leak *leak)
{
	uint64_t each = leak->blocks ? leak->bytes / leak->blocks : 0;
	uint64_t room = room_on(doc, doc->sites[leak->site].record.device), more;
	char count[GM_FORMAT_BYTES], every[GM_FORMAT_BYTES], left[GM_FORMAT_BYTES];
	double interval_s;
	const char *text;

	if (leak->blocks < 2 || leak->last_ns <= leak->first_ns || !each)
		return NULL;
	interval_s = (double)(leak->last_ns - leak->first_ns) / 1e9 / (double)(leak->blocks - 1);
	text = gm_doc_printf(doc, "+%s each time, every %s", gm_size(doc, each),
			     gm_format_time(every, interval_s));
	if (room == GM_NO_BYTES)
		return text;
	more = room / each;
	return gm_doc_printf(doc, "%s; the device is full after about %s more (%s)", text,
			     gm_format_count(count, more),
			     gm_format_time(left, (double)more * interval_s));
}

static const char *origins_of(struct gm_doc *doc, const struct gm_leak *leak)
{
	if (leak->blocks > 2 && leak->threads == leak->blocks)
		return gm_doc_printf(doc, "each from another thread");
	if (leak->blocks > 2 && leak->streams == leak->blocks)
		return gm_doc_printf(doc, "each on another stream");
	if (leak->threads > 1)
		return gm_doc_printf(doc, "from %llu threads", (unsigned long long)leak->threads);
	return NULL;
}

/* "; 8 MiB of it was freed only as the program ended", and by whom if that tells why. */
static void say_freed_at_end(struct gm_doc *doc, struct gm_finding *finding,
			     const struct gm_leak *leak)
{
	uint64_t after = 0;
	bool collector_off = false;

	for (unsigned i = 0; i < leak->sites_count; i++) {
		const struct gm_site *site = &doc->sites[leak->sites[i]];

		after += site->work_bytes - site->record.live_bytes;
		collector_off |= (site->record.flags & GM_SITE_COLLECTOR_OFF) != 0;
	}
	if (!after)
		return;
	finding->evidence = gm_doc_printf(
		doc, "%s; %s of it was freed only as the program ended%s", finding->evidence,
		gm_size(doc, after),
		collector_off ? ", by Python's garbage collector, which the program had switched "
				"off"
			      : "");
	if (collector_off)
		gm_advise(doc, finding,
			  "if reference cycles keep it, break them, or call gc.collect() between "
			  "steps");
}

static void find_growth(struct gm_doc *doc, const struct gm_leak *leak)
{
	const struct gm_site *site = &doc->sites[leak->site];
	struct gm_finding *finding = gm_finding_new(doc, "leak.grow", GM_ERROR, site->record.device,
						    leak->bytes, leak->site);
	const char *rate = rate_of(doc, leak), *origins = origins_of(doc, leak);

	finding->title =
		gm_doc_printf(doc, "%s of %s memory keeps growing at %s", gm_size(doc, leak->bytes),
			      memory_name(&site->record), place_of(doc, leak));
	finding->brief = gm_doc_printf(doc, "%s keeps growing at %s", gm_size(doc, leak->bytes),
				       place_of(doc, leak));
	finding->evidence = gm_doc_printf(
		doc, "%llu live; %s%s", (unsigned long long)leak->blocks,
		leak->sites_count > 1 ? "at the site with the most bytes " : "", site->why);
	if (origins)
		finding->evidence = gm_doc_printf(doc, "%s; %s", finding->evidence, origins);
	if (rate)
		finding->evidence = gm_doc_printf(doc, "%s; %s", finding->evidence, rate);
	say_freed_at_end(doc, finding, leak);
	if (gm_grew_in_backward(site))
		gm_advise(doc, finding,
			  "these are gradients, which live as long as their parameters: look for "
			  "what keeps those, such as a list of models or an optimizer's old state");
	advise_leak(doc, finding, site);
}

/* ---- what is live at the end ---- */

struct order {
	uint64_t bytes;
	uint32_t site;
};

static int compare_order(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* Bytes of a site that was not freed at the end; what grows has its own finding. */
static uint64_t left_at_exit(const struct gm_doc *doc, const struct gm_site *site)
{
	if (site->hidden || site->suppressed || site->verdict == GM_CACHED ||
	    site->verdict == GM_GROW || site->verdict == GM_RELEASED || !doc->clean_exit ||
	    doc->framework)
		return 0;
	if (site->record.kind == GM_KIND_REGISTERED && site->record.level == GM_LEVEL_DRIVER)
		return site->record.live_bytes;
	return site->exit_bytes;
}

static void find_left(struct gm_doc *doc, const struct order *order)
{
	const struct gm_site *site = &doc->sites[order->site];
	uint64_t count = is_host(site) ? site->record.live_count : site->exit_count;
	struct gm_finding *finding =
		gm_finding_new(doc, is_host(site) ? "leak.pinned" : "leak.exit", GM_WARNING,
			       site->record.device, order->bytes, order->site);

	finding->title = gm_doc_printf(doc, "%s of %s memory from %s was not freed at exit",
				       gm_size(doc, order->bytes), memory_name(&site->record),
				       gm_stack_label(doc, site->stack));
	finding->brief = gm_doc_printf(doc, "%s not freed at %s", gm_size(doc, order->bytes),
				       gm_stack_label(doc, site->stack));
	finding->evidence =
		gm_doc_printf(doc, "%llu of %llu allocations live; %s", (unsigned long long)count,
			      (unsigned long long)site->record.allocations, site->why);
	advise_leak(doc, finding, site);
}

static void find_leaks_at_exit(struct gm_doc *doc)
{
	struct order *order = gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*order));
	unsigned count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		uint64_t bytes = left_at_exit(doc, &doc->sites[i]);

		if (bytes)
			order[count++] = (struct order){bytes, i};
	}
	if (count)
		qsort(order, count, sizeof(*order), compare_order);
	for (unsigned i = 0; i < count && i < MAX_LEAKS; i++)
		find_left(doc, &order[i]);
	free(order);
}

void gm_judge_leaks(struct gm_doc *doc)
{
	unsigned count;
	struct gm_leak *leaks = gm_find_leaks(doc, &count);

	sum_leaks(doc);
	for (unsigned i = 0; i < count && i < MAX_LEAKS; i++)
		find_growth(doc, &leaks[i]);
	find_leaks_at_exit(doc);
}
