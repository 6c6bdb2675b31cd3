/*
 * Sites whose stacks read alike are one site: a loop that the compiler unrolled has a return
 * address for each copy of its body, and a library that was loaded again has other addresses. The
 * tracker tells them apart; a person cannot.
 */
#include "report/load/merge_sites.h"
#include "report/support/memory.h"
#include <stdlib.h>

struct order {
	uint64_t hash;
	unsigned site;
};

static int compare_order(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Their windows lie at the same times, but their lowest and highest values in a window do not: the
 * sum's are not known, only bounds of them. What all had at a window's end is exact.
 */
static void add_windows(struct gm_doc *doc, struct gm_site *into, const struct gm_site *from)
{
	struct gm_window sums[GM_WINDOWS];

	for (unsigned i = 0; i < GM_WINDOWS; i++) {
		const struct gm_window more = gm_site_window(from, i);

		sums[i] = gm_site_window(into, i);
		sums[i].min_bytes += more.min_bytes;
		sums[i].max_bytes += more.max_bytes;
		sums[i].last_bytes += more.last_bytes;
	}
	gm_site_put_windows(doc, into, sums);
}

static void add_figures(struct gm_site_figures *into, const struct gm_site_figures *from)
{
	into->live_bytes += from->live_bytes;
	into->live_count += from->live_count;
	into->freed_bytes += from->freed_bytes;
	into->frees += from->frees;
	into->bytes_at_peak += from->bytes_at_peak;
	into->peak_bytes = most(into->peak_bytes, from->peak_bytes);
	into->allocated_bytes += from->allocated_bytes;
	into->allocations += from->allocations;
	into->first_ns = least(into->first_ns, from->first_ns);
	into->first_serial = least(into->first_serial, from->first_serial);
	into->last_ns = most(into->last_ns, from->last_ns);
	into->level_max_bytes = most(into->level_max_bytes, from->level_max_bytes);
	into->min_alloc_bytes = least(into->min_alloc_bytes, from->min_alloc_bytes);
	into->max_alloc_bytes = most(into->max_alloc_bytes, from->max_alloc_bytes);
	into->failures += from->failures;
	into->stray_bytes += from->stray_bytes;
	into->stray_count += from->stray_count;
	into->failed_frees += from->failed_frees;
	into->retries += from->retries;
	into->collected_bytes += from->collected_bytes;
	into->collected_count += from->collected_count;
	into->flags |= from->flags;
}

/*
 * The site's highest sum that is known: of a window's end, of the level's peak, of now. No window's
 * bound exceeds it.
 */
static void raise_peak(struct gm_doc *doc, struct gm_site *site)
{
	struct gm_site_record record = gm_site_record_of(site);
	uint64_t peak = most(record.peak_bytes, most(record.bytes_at_peak, site->work_bytes));

	for (unsigned i = 0; i <= record.window_current && i < GM_WINDOWS; i++)
		peak = most(peak, record.windows[i].last_bytes);
	record.peak_bytes = peak;
	for (unsigned i = 0; i < GM_WINDOWS; i++)
		record.windows[i].max_bytes = least(record.windows[i].max_bytes, peak);
	gm_site_put(doc, site, &record);
}

static void merge(struct gm_doc *doc, unsigned into, unsigned from)
{
	struct gm_site *site = &doc->sites[into], *twin = &doc->sites[from];
	uint32_t stack = twin->record.stack;

	add_figures(&site->record, &twin->record);
	add_windows(doc, site, twin);
	site->exit_bytes += twin->exit_bytes;
	site->exit_count += twin->exit_count;
	site->work_bytes += twin->work_bytes;
	site->work_count += twin->work_count;
	site->physical_bytes += twin->physical_bytes;
	site->records++;
	twin->record = (struct gm_site_figures){.stack = stack,
						.kind = site->record.kind,
						.level = site->record.level,
						.device = site->record.device};
	twin->changed = 0;
	twin->exit_bytes = twin->exit_count = twin->work_bytes = twin->work_count = 0;
	twin->physical_bytes = 0;
	twin->id = site->id;
	twin->merged = into;
}

static void redirect_blocks(const struct gm_doc *doc, struct gm_block *blocks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (blocks[i].site != GM_NONE)
			blocks[i].site = doc->sites[blocks[i].site].merged;
}

static void redirect_errors(const struct gm_doc *doc, struct gm_error *errors, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (errors[i].record.victim_site < doc->sites_count)
			errors[i].record.victim_site =
				doc->sites[errors[i].record.victim_site].merged;
}

static void redirect_oom(const struct gm_doc *doc, struct gm_oom *oom)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < oom->top_count; i++) {
		struct gm_oom_top top = oom->top[i];
		unsigned k = 0;

		top.site = doc->sites[top.site].merged;
		while (k < kept && oom->top[k].site != top.site)
			k++;
		if (k == kept) {
			oom->top[kept++] = top;
			continue;
		}
		oom->top[k].bytes += top.bytes;
		oom->top[k].count += top.count;
	}
	oom->top_count = kept;
}

void gm_merge_sites(struct gm_doc *doc)
{
	struct order *order = gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*order));
	unsigned merged = 0, first = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		doc->sites[i].merged = i;
		doc->sites[i].records = 1;
		order[i] = (struct order){doc->sites[i].key, i};
	}
	if (doc->sites_count)
		qsort(order, doc->sites_count, sizeof(*order), compare_order);
	for (unsigned i = 1; i < doc->sites_count; i++) {
		if (order[i].hash != order[first].hash) {
			first = i;
			continue;
		}
		if (!doc->sites[order[i].site].stack ||
		    doc->sites[order[i].site].record.stack == GM_NONE)
			continue; /* without a stack nothing says that they are one */
		merge(doc, order[first].site, order[i].site);
		merged++;
	}
	free(order);
	if (!merged)
		return;
	for (unsigned i = 0; i < doc->sites_count; i++)
		if (doc->sites[i].records > 1)
			raise_peak(doc, &doc->sites[i]);
	redirect_blocks(doc, doc->blocks, doc->blocks_count);
	redirect_blocks(doc, doc->freed_blocks, doc->freed_blocks_count);
	for (unsigned i = 0; i < doc->ooms_count; i++)
		redirect_oom(doc, &doc->ooms[i]);
	redirect_errors(doc, doc->errors, doc->errors_count);
	redirect_errors(doc, doc->failures, doc->failures_count);
}
