/*
 * A process that was killed inside an update, or a live one that was read during one, leaves
 * counters that disagree with the records. The records are right (they change by one store each),
 * so current figures are added up from them again; totals over the run are then made to fit.
 */
#include "report/load/repair.h"
#include "report/load/internal.h"
#include "account/recount.h"
#include "account/series.h"
#include <stdlib.h>
#include <string.h>

/* `blocks` are in order of address. */
uint64_t gm_sum_physical(const struct gm_doc *doc, int device)
{
	struct gm_physical_sum sum = {0};

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record block = gm_doc_block(doc, i);

		if (block.device == device)
			gm_physical_sum_add(&sum, &block);
	}
	return sum.bytes;
}

static void add_reserves(struct gm_doc *doc)
{
	for (unsigned p = 0; p < doc->pools_count; p++) {
		const struct gm_pool_record *pool = &doc->pools[p];

		for (unsigned i = 0; i < doc->levels_count; i++)
			if (doc->levels[i].level == GM_LEVEL_DRIVER &&
			    pool->type != GM_POOL_IMPORTED && doc->levels[i].device == pool->device)
				doc->levels[i].physical_bytes += pool->reserved_bytes;
	}
}

/* The records of the document that an allocation counts in; `sites` are whole ones. */
static struct gm_counters counters_of(struct gm_doc *doc, struct gm_site_record *sites,
				      const struct gm_alloc_record *block)
{
	struct gm_counters in = {.in_level = gm_in_level(block->level, block->kind),
				 .extra = block->extra};
	bool in_usage = gm_in_usage(block->level, block->kind);

	if (block->site != GM_NONE)
		in.site = &sites[block->site];
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == block->level && doc->levels[i].device == block->device)
			in.level = &doc->levels[i];
	for (unsigned i = 0; in_usage && i < doc->usage_count; i++)
		if (doc->usage[i].kind == block->kind && doc->usage[i].device == block->device)
			in.usage = &doc->usage[i];
	return in;
}

/* Does the same with every record of the document. */
static void for_each(struct gm_doc *doc, struct gm_site_record *sites,
		     void (*step)(const struct gm_counters *))
{
	for (unsigned i = 0; i < doc->sites_count; i++)
		step(&(struct gm_counters){.site = &sites[i]});
	for (unsigned i = 0; i < doc->levels_count; i++)
		step(&(struct gm_counters){.level = &doc->levels[i], .in_level = true});
	for (unsigned i = 0; i < doc->usage_count; i++)
		step(&(struct gm_counters){.usage = &doc->usage[i]});
}

/* The timeline of a device ends with this value. */
static void follow_line(struct gm_doc *doc, int device, unsigned series, uint64_t bytes)
{
	for (unsigned i = 0; i < doc->timeline_count; i++) {
		struct gm_timeline_record *line = &doc->timeline[i];

		if (line->device == device && line->series == series && line->points)
			gm_series_note(line, bytes);
	}
}

static void follow_level(struct gm_doc *doc, struct gm_torch_record *torch,
			 const struct gm_level_record *level)
{
	gm_torch_follow(torch, level);
	gm_torch_raise_peaks(torch);
	follow_line(doc, level->device, GM_SERIES_TORCH_ALLOCATED, level->current_bytes);
}

static void follow_counts(struct gm_doc *doc, struct gm_torch_record *torch,
			  struct gm_level_record *level)
{
	struct gm_block_counts counts = gm_copy_counts(torch);

	doc->late_events += gm_level_behind(level, &counts);
	gm_level_follow(level, torch, &counts);
	follow_line(doc, level->device, GM_SERIES_TORCH_ALLOCATED, gm_lower_bytes(torch));
	follow_line(doc, level->device, GM_SERIES_TORCH_ALLOCATED, gm_upper_bytes(torch));
	torch->by_level = 1;
}

static struct gm_level_record *level_of(struct gm_doc *doc, int device)
{
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].device == device && doc->levels[i].level == GM_LEVEL_TORCH)
			return &doc->levels[i];
	return NULL;
}

/*
 * Among PyTorch's blocks their level alone is kept up to date, or their counts alone: see struct
 * gm_torch_record.
 */
static void follow_levels(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->torches_count; i++) {
		struct gm_torch_record *torch = &doc->torches[i];
		struct gm_level_record *level = level_of(doc, torch->device);

		if (torch->counting && level)
			follow_counts(doc, torch, level);
		if (torch->by_level && level)
			follow_level(doc, torch, level);
	}
}

/*
 * Sums the bytes that the driver holds for each level: its live allocations, and the reserves of
 * pools as a whole.
 */
static void recompute_physical(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER)
			doc->levels[i].physical_bytes = gm_sum_physical(doc, doc->levels[i].device);
	add_reserves(doc);
	for (unsigned i = 0; i < doc->levels_count; i++)
		gm_level_physical(&doc->levels[i], 0);
}

/*
 * Sums PyTorch's figures from its blocks. Where PyTorch counted otherwise than the tracker its own
 * totals were taken over, and the records cannot give them.
 */
static void recompute_torch(struct gm_doc *doc, struct gm_torch_record *torch)
{
	uint64_t reserved_bytes = 0;

	if (torch->mismatches || torch->allocator == GM_TORCH_ASYNC)
		return;
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *block = &copy;

		if (block->device == torch->device && gm_torch_reserves(gm_torch_part(block)))
			reserved_bytes += block->bytes;
	}
	gm_torch_recount(torch, reserved_bytes);
}

static void recompute_vmm(struct gm_doc *doc, struct gm_vmm_record *vmm)
{
	gm_vmm_recount_begin(vmm);
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record block = gm_doc_block(doc, i);

		if (block.device == vmm->device && gm_in_vmm(&block))
			gm_vmm_add(vmm, &block);
	}
}

static void zero_totals(const struct gm_counters *in)
{
	if (in->usage)
		in->usage->allocated_bytes = in->usage->freed_bytes = in->usage->allocations =
			in->usage->frees = 0;
	if (in->level)
		in->level->allocated_bytes = in->level->freed_bytes = in->level->allocations =
			in->level->frees = 0;
}

/* Totals of kinds and levels, which may have counted the update that a site did not, or the other
 * way round. Every allocation has its site unless the file was full. */
static void sum_totals(struct gm_doc *doc, struct gm_site_record *sites)
{
	if (doc->header->dropped_records)
		return;
	for_each(doc, sites, zero_totals);
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site_record *site = &sites[i];
		const struct gm_alloc_record any = {.site = i,
						    .level = site->level,
						    .kind = site->kind,
						    .device = site->device};
		const struct gm_counters in = counters_of(doc, sites, &any);

		if (in.usage) {
			in.usage->allocated_bytes += site->allocated_bytes;
			in.usage->freed_bytes += site->freed_bytes;
			in.usage->allocations += site->allocations;
			in.usage->frees += site->frees;
		}
		if (in.level && in.in_level) {
			in.level->allocated_bytes += site->allocated_bytes;
			in.level->freed_bytes += site->freed_bytes;
			in.level->allocations += site->allocations;
			in.level->frees += site->frees;
		}
	}
}

/* The time of the last event is written after what the event changed. */
static void follow_last_allocation(struct gm_doc *doc)
{
	uint64_t last_ns = 0;

	for (unsigned i = 0; i < doc->sites_count; i++)
		if (doc->sites[i].record.allocations && doc->sites[i].record.last_ns > last_ns)
			last_ns = doc->sites[i].record.last_ns;
	if (last_ns != GM_NO_BYTES && gm_seconds(last_ns) > doc->duration_s)
		doc->duration_s = gm_seconds(last_ns);
}

static void recompute(struct gm_doc *doc, struct gm_site_record *sites)
{
	follow_last_allocation(doc);
	for_each(doc, sites, gm_recount_begin);
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record block = gm_doc_block(doc, i);
		const struct gm_counters in = counters_of(doc, sites, &block);

		gm_recount_add(&in, &block);
	}
	for_each(doc, sites, gm_recount_end);
	sum_totals(doc, sites);
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER)
			follow_line(doc, doc->levels[i].device,
				    doc->levels[i].device == GM_HOST ? GM_SERIES_PINNED
								     : GM_SERIES_TRACKED,
				    doc->levels[i].current_bytes);
	recompute_physical(doc);
	for (unsigned i = 0; i < doc->torches_count; i++)
		recompute_torch(doc, &doc->torches[i]);
	for (unsigned i = 0; i < doc->pluggables_count; i++)
		recompute_torch(doc, &doc->pluggables[i]);
	for (unsigned i = 0; i < doc->vmm_count; i++)
		recompute_vmm(doc, &doc->vmm[i]);
}

static void repair(struct gm_doc *doc)
{
	struct gm_site_record *sites =
		gm_realloc(NULL, ((size_t)doc->sites_count + 1) * sizeof(*sites));

	/*
	 * In a sampled recording, and where the file had no room for all that was live, the records
	 * do not add up to the totals: these are made to fit.
	 */
	bool part = doc->header->sample_bytes ||
		    doc->header->dropped_tables & 1ull << GM_TABLE_ALLOCS;

	for (unsigned i = 0; i < doc->sites_count; i++)
		sites[i] = gm_site_record_of(&doc->sites[i]);
	if (part)
		for_each(doc, sites, gm_recount_end);
	else
		recompute(doc, sites);
	for (unsigned i = 0; i < doc->sites_count; i++)
		gm_site_put(doc, &doc->sites[i], &sites[i]);
	free(sites);
}

void gm_repair(struct gm_doc *doc)
{
	if (doc->header->sequence & 1 || gm_reader_torn(doc->reader))
		repair(doc);
	follow_levels(doc);
}
