/*
 * The document's lists at a moment, from the books and the live allocations of then. See
 * internal.h.
 */
#include "report/history/internal.h"
#include "report/load/repair.h"
#include "account/kinds.h"
#include <string.h>

static void put_levels(struct gm_doc *doc, const struct gm_books *books)
{
	unsigned most = GM_SLOTS * GM_LEVELS;

	doc->levels = gm_zone_alloc(&doc->zone, most, sizeof(*doc->levels));
	doc->levels_count = 0;
	for (unsigned slot = 0; slot < GM_SLOTS; slot++)
		for (unsigned level = 0; level < GM_LEVELS; level++)
			if (books->levels_used[slot][level])
				doc->levels[doc->levels_count++] = books->levels[slot][level];
}

/* Devices first and the host last. */
static void put_usage(struct gm_doc *doc, const struct gm_books *books)
{
	unsigned most = GM_SLOTS * GM_KINDS;

	doc->usage = gm_zone_alloc(&doc->zone, most, sizeof(*doc->usage));
	doc->usage_count = 0;
	for (unsigned i = 1; i <= GM_SLOTS; i++)
		for (unsigned kind = 1; kind < GM_KINDS; kind++) {
			const struct gm_usage_record *usage = &books->usage[i % GM_SLOTS][kind];

			if (usage->allocations || usage->failures || usage->current_count)
				doc->usage[doc->usage_count++] = *usage;
		}
}

/* With cudaMallocAsync a pool reserves, and no history has pools' reserves. */
static void forget_reserve(struct gm_torch_record *torch)
{
	torch->reserved_bytes = torch->reserved_peak_bytes = GM_NO_BYTES;
	torch->reserved_total_bytes = torch->released_total_bytes = GM_NO_BYTES;
}

static void put_torch(struct gm_doc *doc, const struct gm_books *books)
{
	for (unsigned i = 0; i < doc->torches_count; i++) {
		struct gm_torch_record *torch = &doc->torches[i];
		struct gm_torch_record then = books->torch[gm_slot(torch->device)];

		then.device = torch->device;
		then.allocator = torch->allocator;
		then.alloc_retries = GM_NO_BYTES;
		then.ooms = GM_NO_BYTES;
		if (then.allocator == GM_TORCH_ASYNC)
			forget_reserve(&then);
		*torch = then;
	}
}

static void put_vmm(struct gm_doc *doc, const struct gm_books *books)
{
	for (unsigned i = 0; i < doc->vmm_count; i++) {
		int16_t device = doc->vmm[i].device;

		doc->vmm[i] = books->vmm[gm_slot(device)];
		doc->vmm[i].device = device;
	}
}

/* The window that the moment lies in. */
static uint32_t window_at(const struct gm_header *header, uint64_t at_ns)
{
	uint32_t i = header->window_current < GM_WINDOWS ? header->window_current : GM_WINDOWS - 1;

	while (i && header->window_start_ns[i] > at_ns)
		i--;
	return i;
}

uint64_t gm_moment_window(const struct gm_doc *doc, uint64_t at_ns)
{
	return doc->header->window_start_ns[window_at(doc->header, at_ns)];
}

/*
 * Puts the accounted figures into the site, whose identity stays. Windows that had ended are as
 * they were.
 */
static void put_site(struct gm_site_record *site, const struct gm_site_record *then,
		     uint32_t window)
{
	struct gm_site_record was = *site;

	*site = *then;
	site->stack = was.stack;
	site->kind = was.kind;
	site->level = was.level;
	site->device = was.device;
	site->function = was.function;
	site->caller_module = was.caller_module;
	site->flags = was.flags;
	site->window_current = window;
	site->window_merges = was.window_merges;
	site->window_resets = was.window_resets;
	memcpy(site->windows, was.windows, window * sizeof(*was.windows));
	site->windows[window] = then->window_resets
					? then->windows[0]
					: (struct gm_window){then->live_bytes, then->live_bytes, 0};
	site->windows[window].last_bytes = then->live_bytes;
}

static void put_sites(struct gm_doc *doc, const struct gm_books *books, uint32_t window)
{
	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct gm_site_record record = gm_site_record_of(&doc->sites[i]);

		put_site(&record, &books->sites[i], window);
		gm_site_put(doc, &doc->sites[i], &record);
	}
}

static bool before_mark(const struct gm_doc *doc, const struct gm_alloc_record *record)
{
	return doc->header->first_mark_serial && record->serial < doc->header->first_mark_serial;
}

static void put_blocks(struct gm_doc *doc)
{
	unsigned live = 0;

	for (uint32_t i = 0; i < doc->records_count; i++)
		live += doc->records[i].state != GM_STATE_EMPTY;
	doc->blocks = gm_zone_alloc(&doc->zone, live, sizeof(*doc->blocks));
	doc->blocks_count = 0;
	for (uint32_t i = 0; i < doc->records_count; i++) {
		struct gm_alloc_record record = doc->records[i];

		if (record.state == GM_STATE_EMPTY)
			continue;
		if (record.site >= doc->sites_count)
			record.site = GM_NONE;
		if (before_mark(doc, &record)) {
			record.flags |= GM_ALLOC_BEFORE_MARK;
			if (record.site != GM_NONE)
				gm_site_add_stray(&doc->sites[record.site].record, record.bytes, 1);
		}
		gm_block_put(doc, &doc->blocks[doc->blocks_count++], &record);
	}
	gm_sort_blocks(doc, doc->blocks, doc->blocks_count);
}

/* Not known where pools are in play: their reserves are not in the history. */
static void put_physical(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->levels_count; i++) {
		struct gm_level_record *level = &doc->levels[i];
		bool known = level->level == GM_LEVEL_DRIVER && !doc->pools_count;

		level->physical_bytes = known ? gm_sum_physical(doc, level->device) : GM_NO_BYTES;
		level->physical_peak_bytes = GM_NO_BYTES;
	}
}

/* Lists of things that happened: what came later leaves them. Sums over the run have no moment. */
static void cut_lists(struct gm_doc *doc, uint64_t at_ns)
{
	unsigned n = 0;

	while (n < doc->marks_count && doc->marks[n].record.time_ns <= at_ns)
		n++;
	doc->marks_count = n;
	n = 0;
	for (unsigned i = 0; i < doc->ooms_count; i++)
		if (doc->ooms[i].record.time_ns <= at_ns)
			doc->ooms[n++] = doc->ooms[i];
	if (n < doc->ooms_count && n <= GM_OOMS_FIRST)
		doc->ooms_lost = 0; /* those lie between the first and the latest */
	doc->ooms_count = n;
	n = 0;
	for (unsigned i = 0; i < doc->errors_count; i++)
		if (doc->errors[i].record.time_ns <= at_ns)
			doc->errors[n++] = doc->errors[i];
	doc->errors_count = n;
	n = 0;
	for (unsigned i = 0; i < doc->failures_count; i++)
		if (doc->failures[i].record.time_ns <= at_ns)
			doc->failures[n++] = doc->failures[i];
	doc->failures_count = n;
	for (unsigned i = 0; i < doc->timeline_count; i++) {
		uint64_t points = at_ns / doc->timeline[i].width_ns;

		if (points < doc->timeline[i].points)
			doc->timeline[i].points = (uint32_t)points;
	}
	doc->pools_count = doc->retries_count = doc->implicit_count = doc->costs_count = 0;
	doc->contexts_count = doc->ledger_count = 0;
}

/* Returns the number of marks that the program had made by then. */
static uint32_t marks_until(const struct gm_doc *doc, uint64_t at_ns)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < doc->marks_count; i++)
		count += doc->marks[i].record.time_ns <= at_ns &&
			 gm_mark_by_program(doc->marks[i].record.source);
	return count;
}

static void put_header(struct gm_doc *doc, const struct gm_options *options, uint64_t serial)
{
	struct gm_header *header = gm_zone_alloc(&doc->zone, 1, sizeof(*header));

	*header = *doc->header;
	header->last_event_ns = options->at_ns;
	header->ended_ns = 0;
	header->end = GM_END_NONE;
	header->sequence = 0;
	header->serial = serial;
	header->window_current = window_at(doc->header, options->at_ns);
	header->window_filled = marks_until(doc, options->at_ns);
	if (header->first_mark_serial > serial)
		header->first_mark_serial = 0;
	doc->header = header;
	doc->at_ns = options->at_ns;
	doc->clean_exit = false;
	doc->end = "running";
	doc->duration_s = gm_seconds(options->at_ns);
}

void gm_moment_put(struct gm_doc *doc, const struct gm_books *books, const struct gm_replay *replay,
		   const struct gm_options *options)
{
	doc->records_count = replay->count;
	doc->records = gm_zone_alloc(&doc->zone, replay->count + 1, sizeof(*doc->records));
	if (replay->count)
		memcpy(doc->records, replay->records, replay->count * sizeof(*doc->records));
	put_header(doc, options, books->serial);
	put_levels(doc, books);
	put_usage(doc, books);
	put_torch(doc, books);
	put_vmm(doc, books);
	put_sites(doc, books, doc->header->window_current);
	put_blocks(doc);
	put_physical(doc);
	cut_lists(doc, options->at_ns);
}
