/*
 * fragmentation.high: a level whose fragmentation is over 20 % and over 256 MiB where it hurts.
 */
#include "report/judge/alloc_conf.h"
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/judge/setting_advice.h"
#include "report/stacks/labels.h"
#include <string.h>

#define LEAST_PERCENT 20
#define LEAST_BYTES   (256ull << 20)
#define PINNED_PART   8 /* less than an eighth could be given back */

static void advise_torch(struct gm_doc *doc, struct gm_finding *finding,
			 const struct gm_fragmentation *row)
{
	uint64_t unused = row->reserved_bytes - row->used_bytes;

	if (row->releasable_bytes >= unused / 2)
		gm_advise(doc, finding,
			  "%s lie in segments without a block: torch.cuda.empty_cache() "
			  "between phases gives them back",
			  gm_size(doc, row->releasable_bytes));
	else if (!row->releasable_bytes)
		gm_advise(doc, finding,
			  "empty_cache() would give back nothing: live blocks pin all of it");
	else
		gm_advise(doc, finding,
			  "empty_cache() would give back only %s: the rest is pinned by "
			  "live blocks",
			  gm_size(doc, row->releasable_bytes));
	/* Memory that empty_cache gives back is no hole: other settings would not change it. */
	if (unused - row->releasable_bytes < LEAST_BYTES)
		return;
	if (gm_torch_enabled(doc, "expandable_segments") || gm_torch_async_backend(doc) ||
	    gm_advise_settings(doc, &finding->advice, &finding->advice_count, row->device, false))
		return;
	gm_advise(doc, finding, "set %s=expandable_segments:True%s", gm_torch_conf_name(doc),
		  gm_torch_setting(doc, "max_split_size_mb")
			  ? " in place of max_split_size_mb, which is set"
			  : ", or max_split_size_mb so that large blocks stay whole");
	gm_advise_history(doc, &finding->advice, &finding->advice_count);
}

/* The highest release threshold of the device's pools, GM_NO_BYTES if none was asked. */
static uint64_t threshold_of(const struct gm_doc *doc, int device)
{
	uint64_t highest = 0;
	bool known = false;

	for (unsigned i = 0; i < doc->pools_count; i++) {
		const struct gm_pool_record *pool = &doc->pools[i];

		if (pool->device != device || !pool->configured)
			continue;
		known = true;
		if (pool->release_threshold_bytes > highest)
			highest = pool->release_threshold_bytes;
	}
	return known ? highest : GM_NO_BYTES;
}

static void advise_pool(struct gm_doc *doc, struct gm_finding *finding,
			const struct gm_fragmentation *row)
{
	uint64_t threshold = threshold_of(doc, row->device);

	if (threshold == 0)
		gm_advise(doc, finding,
			  "its release threshold is 0: the next wait for the stream gives it back");
	else if (threshold == GM_NO_BYTES)
		gm_advise(doc, finding,
			  "the pool keeps it for reuse: lower its release threshold or "
			  "call cudaMemPoolTrimTo when it is not needed");
	else
		gm_advise(doc, finding,
			  "the pool keeps %s for reuse: lower its release threshold or "
			  "call cudaMemPoolTrimTo when it is not needed",
			  threshold >= row->reserved_bytes
				  ? "all of it"
				  : gm_doc_printf(doc, "up to %s", gm_size(doc, threshold)));
}

static bool is_high(const struct gm_fragmentation *row)
{
	uint64_t unused = gm_unused_bytes(row);

	return unused >= LEAST_BYTES && unused >= row->reserved_bytes / 100 * LEAST_PERCENT;
}

/* The level at an out-of-memory event that its fragmentation caused, NULL if there was none. */
static const struct gm_fragmentation *at_oom(const struct gm_doc *doc,
					     const struct gm_fragmentation *row)
{
	for (unsigned i = 0; i < doc->ooms_count; i++) {
		const struct gm_oom *oom = &doc->ooms[i];

		if (oom->record.device != row->device || strcmp(oom->verdict, "fragmented") != 0)
			continue;
		for (unsigned k = 0; k < oom->holes_count; k++)
			if (strcmp(oom->holes[k].level, row->level) == 0 && is_high(&oom->holes[k]))
				return &oom->holes[k];
	}
	return NULL;
}

/*
 * Finds the moment at which fragmentation hurts: at an out-of-memory event; at the peak, where the
 * reserve is as large as it has to be; or at the end of the work, if nearly all of it is pinned. At
 * other times idle memory waits for its next use.
 */
static const struct gm_fragmentation *
where_it_hurts(const struct gm_doc *doc, const struct gm_fragmentation *row, const char **when)
{
	const struct gm_fragmentation *oom = at_oom(doc, row), *end = gm_holes_at_work_end(row);

	*when = oom ? "were not used when memory ran out" : "were not used at the peak";
	if (oom)
		return oom;
	if (row->peak && is_high(row->peak))
		return row->peak;
	*when = "are not used, and blocks that stay keep them";
	return is_high(end) && end->releasable_bytes < gm_unused_bytes(end) / PINNED_PART ? end
											  : NULL;
}

static void advise_level(struct gm_doc *doc, struct gm_finding *finding,
			 const struct gm_fragmentation *row)
{
	if (strcmp(row->level, "torch") == 0)
		advise_torch(doc, finding, row);
	else if (strcmp(row->level, "pool") == 0)
		advise_pool(doc, finding, row);
	else
		gm_advise(doc, finding,
			  "small allocations share slabs of 2 MiB and one of them keeps "
			  "a whole slab: group what lives equally long, or use a pool");
}

void gm_judge_holes(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->fragmentation_count; i++) {
		const struct gm_fragmentation *end = gm_holes_at_work_end(&doc->fragmentation[i]),
					      *row;
		const struct gm_pinner *pinner = NULL;
		struct gm_finding *finding;
		const char *when;
		uint64_t unused;

		/* A program takes its own pool's memory in advance: that it is idle is no fault. */
		if (strcmp(doc->fragmentation[i].level, "custom") == 0)
			continue;
		row = where_it_hurts(doc, &doc->fragmentation[i], &when);
		if (!row)
			continue;
		unused = gm_unused_bytes(row);
		/* An event keeps no pinners: those of the end of the work are mostly the same. */
		if (row->pinners_count || end->pinners_count)
			pinner = row->pinners_count ? row->pinners : end->pinners;
		finding = gm_finding_new(doc, "fragmentation.high", GM_WARNING, row->device, unused,
					 pinner ? pinner->site : GM_NO_SITE);
		finding->title = gm_doc_printf(doc, "%s of %s reserved %s %s",
					       gm_size(doc, unused),
					       gm_size(doc, row->reserved_bytes),
					       strcmp(row->level, "torch") == 0  ? "by PyTorch"
					       : strcmp(row->level, "pool") == 0 ? "by CUDA's pools"
										 : "in slabs",
					       when);
		finding->evidence =
			gm_doc_printf(doc, "%.0f %% idle, largest hole %s",
				      100.0 * (double)unused / (double)row->reserved_bytes,
				      gm_size(doc, row->largest_free_bytes));
		if (pinner && pinner->hole_bytes > unused / 2)
			gm_advise(doc, finding,
				  "most is pinned by blocks of %s: allocate what lives long "
				  "before what is large, or free it",
				  gm_stack_label(doc, doc->sites[pinner->site].stack));
		advise_level(doc, finding, row);
	}
}
