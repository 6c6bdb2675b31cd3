/*
 * leak.grow, leak.exit and leak.pinned: a finding per site, the largest first, and the sums of
 * `leaks`. What a suppression matches is no finding.
 */
#include "report/doc/enum_names.h"
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"
#include "account/kinds.h"
#include <stdlib.h>
#include <string.h>

#define MAX_LEAKS 20 /* findings of one kind; the rest is told by number */

static void sum_leaks(struct gm_doc *doc)
{
	doc->cached_bytes = 0;
	doc->exit_bytes = doc->exit_count = doc->clean_exit ? 0 : GM_NO_BYTES;
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		if (site->hidden)
			continue;
		if (site->verdict == GM_CACHED)
			doc->cached_bytes += site->record.live_bytes;
		if (doc->clean_exit) {
			doc->exit_bytes += site->exit_bytes;
			doc->exit_count += site->exit_count;
		}
	}
	/* What can be read of a damaged file tells of leaks; that it tells of none says nothing. */
	if (gm_doc_lacks(doc, GM_TABLE_SITES) && !doc->exit_count)
		doc->exit_bytes = doc->exit_count = GM_NO_BYTES;
}

static bool has_python(const struct gm_stack *stack)
{
	for (unsigned i = 0; stack && i < stack->count; i++)
		if (stack->frames[i].python)
			return true;
	return false;
}

static bool is_host(const struct gm_site *site)
{
	return gm_kind_on_host(site->record.kind);
}

static void advise_leak(struct gm_doc *doc, struct gm_finding *finding, const struct gm_site *site)
{
	const struct gm_site_record *record = &site->record;

	if (record->failed_frees)
		gm_advise(doc, finding,
			  "%u free%s of this memory failed and %s not looked at; see errors",
			  record->failed_frees, gm_s(record->failed_frees),
			  record->failed_frees == 1 ? "was" : "were");
	if (record->kind == GM_KIND_REGISTERED)
		gm_advise(doc, finding,
			  "unregister it (cudaHostUnregister) when the transfer is done");
	else if (record->level == GM_LEVEL_TORCH || has_python(site->stack))
		gm_advise(doc, finding,
			  "look for what keeps a reference to it: a list of losses or outputs "
			  "that still hold their graph (append loss.item() or .detach()), a cache "
			  "without a limit, an exception's traceback, a closure");
	else
		gm_advise(doc, finding,
			  "free it when its owner goes; look for a pointer that is overwritten "
			  "or a release callback that is not set");
	if (record->frees == 0 && record->allocations > 1 && !record->failed_frees &&
	    site->verdict != GM_GROW)
		gm_advise(doc, finding,
			  "none of its %llu allocations was ever freed: the release is "
			  "missing, not late",
			  (unsigned long long)record->allocations);
}

static struct gm_finding *leak_finding(struct gm_doc *doc, const char *id, uint32_t index,
				       enum gm_severity severity, uint64_t bytes, uint64_t count,
				       const char *does)
{
	const struct gm_site *site = &doc->sites[index];
	struct gm_finding *finding = gm_finding_new(doc, id, severity, site->record.device, bytes, index);

	finding->title =
		gm_doc_printf(doc, "%s of %s memory %s at %s", gm_size(doc, bytes),
		       site->record.level == GM_LEVEL_DRIVER ? gm_kind_name(site->record.kind)
							     : gm_level_name(site->record.level),
		       does, gm_stack_label(doc, site->stack));
	finding->evidence =
		severity == GM_ERROR && site->record.frees == 0
			? site->why
			: gm_doc_printf(doc, "%llu of %llu allocations live; %s",
				 (unsigned long long)count,
				 (unsigned long long)site->record.allocations, site->why);
	advise_leak(doc, finding, site);
	return finding;
}

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

/* Bytes of a site that `id` is about, 0 if it is not about this site. */
static uint64_t leaked(const struct gm_doc *doc, const struct gm_site *site, bool grow)
{
	if (site->hidden || site->suppressed || site->verdict == GM_CACHED ||
	    site->verdict == GM_RELEASED)
		return 0;
	if (grow)
		return site->verdict == GM_GROW ? site->work_bytes : 0;
	if (!doc->clean_exit || doc->framework)
		return 0;
	if (site->record.kind == GM_KIND_REGISTERED && site->record.level == GM_LEVEL_DRIVER)
		return site->record.live_bytes;
	return site->exit_bytes;
}

static void find_leaks(struct gm_doc *doc, bool grow)
{
	struct order *order = gm_realloc(NULL, doc->sites_count * sizeof(*order));
	unsigned count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		uint64_t bytes = leaked(doc, &doc->sites[i], grow);

		if (bytes)
			order[count++] = (struct order){bytes, i};
	}
	if (count)
		qsort(order, count, sizeof(*order), compare_order);
	for (unsigned i = 0; i < count && i < MAX_LEAKS; i++) {
		const struct gm_site *site = &doc->sites[order[i].site];

		if (grow)
			leak_finding(doc, "leak.grow", order[i].site, GM_ERROR, order[i].bytes,
				     site->work_count, "keeps growing");
		else
			leak_finding(doc, is_host(site) ? "leak.pinned" : "leak.exit",
				     order[i].site, GM_WARNING, order[i].bytes,
				     is_host(site) ? site->record.live_count : site->exit_count,
				     "is not freed at the end");
	}
	free(order);
}

void gm_judge_leaks(struct gm_doc *doc)
{
	sum_leaks(doc);
	find_leaks(doc, true);
	find_leaks(doc, false);
}
