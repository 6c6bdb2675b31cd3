/*
 * A process that was killed inside an update, or a live one that was read during one, leaves
 * counters that disagree with the records. The records are right (they change by one store each),
 * so current figures are added up from them again; totals over the run are then made to fit.
 */
#include "report/load/repair.h"
#include "report/holes/segments.h"
#include "report/load/internal.h"
#include "account/kinds.h"
#include "account/sizes.h"
#include <string.h>

/* Small requests share slabs, which are held as a whole too. `blocks` are in order of address. */
uint64_t gm_sum_physical(const struct gm_doc *doc, int device)
{
	uint64_t sum = 0, slab = UINT64_MAX;

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record *block = &doc->blocks[i].record;
		bool small = gm_in_slab(block);

		if (block->device != device || block->level != GM_LEVEL_DRIVER ||
		    !gm_kind_owned(block->kind) || gm_in_pool(block))
			continue;
		if (!small)
			sum += block->physical_bytes;
		else if (gm_slab_of(block->key) != slab)
			sum += GM_SLAB_BYTES;
		if (small)
			slab = gm_slab_of(block->key);
	}
	return sum;
}

static void add_reserves(struct gm_doc *doc)
{
	for (unsigned p = 0; p < doc->pools_count; p++) {
		const struct gm_pool_record *pool = &doc->pools[p];

		for (unsigned i = 0; i < doc->levels_count; i++)
			if (doc->levels[i].level == GM_LEVEL_DRIVER && pool->type != GM_POOL_IMPORTED &&
			    doc->levels[i].device == pool->device)
				doc->levels[i].physical_bytes += pool->reserved_bytes;
	}
}

static void fit(uint64_t live, uint64_t *in, uint64_t *out)
{
	if (*in >= live)
		*out = *in - live;
	else
		*in = live + *out;
}

static void zero(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct gm_site_record *site = &doc->sites[i].record;

		site->live_bytes = site->live_count = site->stray_bytes = site->stray_count = 0;
	}
	for (unsigned i = 0; i < doc->levels_count; i++)
		doc->levels[i].current_bytes = doc->levels[i].current_count =
			doc->levels[i].physical_bytes = 0;
	for (unsigned i = 0; i < doc->usage_count; i++)
		doc->usage[i].current_bytes = doc->usage[i].current_count = 0;
}

static void add_to_site(struct gm_site_record *site, const struct gm_alloc_record *block)
{
	site->live_bytes += block->bytes;
	site->live_count++;
	if (block->flags & GM_ALLOC_BEFORE_MARK) {
		site->stray_bytes += block->bytes;
		site->stray_count++;
	}
}

static void add_block(struct gm_doc *doc, const struct gm_alloc_record *block)
{
	bool in_level = gm_in_level(block->level, block->kind);
	bool in_usage = gm_in_usage(block->level, block->kind);

	if (block->site != GM_NONE)
		add_to_site(&doc->sites[block->site].record, block);
	for (unsigned i = 0; in_level && i < doc->levels_count; i++) {
		struct gm_level_record *level = &doc->levels[i];

		if (level->level != block->level || level->device != block->device)
			continue;
		level->current_bytes += block->bytes;
		level->current_count++;
	}
	for (unsigned i = 0; in_usage && i < doc->usage_count; i++) {
		struct gm_usage_record *usage = &doc->usage[i];

		if (usage->kind == block->kind && usage->device == block->device) {
			usage->current_bytes += block->bytes;
			usage->current_count++;
		}
	}
}

static void fit_totals(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct gm_site_record *site = &doc->sites[i].record;

		fit(site->live_bytes, &site->allocated_bytes, &site->freed_bytes);
		fit(site->live_count, &site->allocations, &site->frees);
		if (site->peak_bytes < site->live_bytes)
			site->peak_bytes = site->live_bytes;
		site->windows[site->window_current].last_bytes = site->live_bytes;
	}
	for (unsigned i = 0; i < doc->levels_count; i++) {
		struct gm_level_record *level = &doc->levels[i];

		fit(level->current_bytes, &level->allocated_bytes, &level->freed_bytes);
		fit(level->current_count, &level->allocations, &level->frees);
		if (level->peak_bytes < level->current_bytes)
			level->peak_bytes = level->current_bytes;
		if (level->physical_peak_bytes < level->physical_bytes)
			level->physical_peak_bytes = level->physical_bytes;
	}
	for (unsigned i = 0; i < doc->usage_count; i++) {
		struct gm_usage_record *usage = &doc->usage[i];

		fit(usage->current_bytes, &usage->allocated_bytes, &usage->freed_bytes);
		fit(usage->current_count, &usage->allocations, &usage->frees);
		if (usage->peak_bytes < usage->current_bytes)
			usage->peak_bytes = usage->current_bytes;
	}
}

/* Its last point, which a value beyond its range had not come to. */
static void follow_line(struct gm_timeline_record *line, uint64_t bytes)
{
	uint32_t i = line->points - 1;

	line->last_bytes[i] = bytes;
	if (bytes < line->min_bytes[i])
		line->min_bytes[i] = bytes;
	if (bytes > line->max_bytes[i])
		line->max_bytes[i] = bytes;
}

static void follow_level(struct gm_doc *doc, struct gm_torch_record *torch, const struct gm_level_record *level)
{
	torch->allocated_bytes = level->current_bytes + torch->beyond_bytes;
	torch->allocations = level->allocations;
	torch->frees = level->frees;
	torch->allocated_total_bytes = level->allocated_bytes;
	torch->freed_total_bytes = level->freed_bytes;
	if (torch->allocated_peak_bytes < torch->allocated_bytes)
		torch->allocated_peak_bytes = torch->allocated_bytes;
	for (unsigned i = 0; i < doc->timeline_count; i++) {
		struct gm_timeline_record *line = &doc->timeline[i];

		if (line->device == level->device && line->series == GM_SERIES_TORCH_ALLOCATED && line->points)
			follow_line(line, level->current_bytes);
	}
}

/* Among PyTorch's blocks their level alone is kept up to date: see struct gm_torch_record. */
static void follow_levels(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->torches_count; i++) {
		struct gm_torch_record *torch = &doc->torches[i];
		const struct gm_level_record *level = gm_doc_level(doc, torch->device, GM_LEVEL_TORCH);

		if (torch->by_level && level)
			follow_level(doc, torch, level);
	}
}

static void recompute(struct gm_doc *doc)
{
	zero(doc);
	for (unsigned i = 0; i < doc->blocks_count; i++)
		add_block(doc, &doc->blocks[i].record);
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER)
			doc->levels[i].physical_bytes = gm_sum_physical(doc, doc->levels[i].device);
	add_reserves(doc);
	fit_totals(doc);
}

void gm_repair(struct gm_doc *doc)
{
	if (doc->header->sequence & 1 || gm_reader_torn(doc->reader))
		recompute(doc);
	follow_levels(doc);
}
