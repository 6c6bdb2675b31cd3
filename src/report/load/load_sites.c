/*
 * Sites with their stacks, and the live allocations.
 */
#include "report/load/load_sites.h"
#include "report/load/internal.h"
#include "report/stacks/stacks.h"
#include "account/counters.h"
#include "account/site_windows.h"
#include <stdlib.h>
#include <string.h>

/* FNV-1a of the same bytes, continued from two values. */
struct hashes {
	uint64_t place, key;
};

static void hash_bytes(struct hashes *hashes, const void *bytes, size_t count)
{
	struct hashes to = *hashes;

	for (const unsigned char *at = bytes; count--; at++) {
		to.place = (to.place ^ *at) * 1099511628211u;
		to.key = (to.key ^ *at) * 1099511628211u;
	}
	*hashes = to;
}

static void hash_text(struct hashes *hashes, const char *text)
{
	hash_bytes(hashes, text ? text : "\1", text ? strlen(text) + 1 : 1);
}

/*
 * Names for a site that two runs of the same program share, whatever addresses they had: its place,
 * which is the same on all devices, and its key.
 */
static void hash_site(struct gm_site *site)
{
	const struct gm_site_figures *record = &site->record;
	struct hashes hashes = {14695981039346656037u, 14695981039346656037u};
	uint64_t place;

	hash_bytes(&hashes, &record->kind, sizeof(record->kind));
	hash_bytes(&hashes, &record->level, sizeof(record->level));
	place = hashes.place;
	hash_bytes(&hashes, &record->device, sizeof(record->device));
	hashes.place = place;
	for (unsigned i = 0; site->stack && i < site->stack->count; i++) {
		const struct gm_frame *frame = gm_stack_frame(site->stack, i);
		const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;

		hash_text(&hashes, frame->function);
		hash_bytes(&hashes, &frame->line, sizeof(frame->line));
		hash_text(&hashes, slash ? slash + 1 : frame->module);
		if (!frame->function)
			hash_bytes(&hashes, &frame->offset, sizeof(frame->offset));
	}
	if (!site->stack || !site->stack->count)
		hash_text(&hashes, site->function);
	site->place = hashes.place;
	site->key = hashes.key;
}

struct id_order {
	uint64_t hash;
	unsigned site;
};

static int compare_ids(const void *a, const void *b)
{
	const struct id_order *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static void name_sites(struct gm_doc *doc)
{
	struct id_order *order = gm_realloc(NULL, doc->sites_count * sizeof(*order));
	unsigned twins = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		hash_site(&doc->sites[i]);
		order[i] = (struct id_order){doc->sites[i].key >> 16, i};
	}
	if (doc->sites_count)
		qsort(order, doc->sites_count, sizeof(*order), compare_ids);
	for (unsigned i = 0; i < doc->sites_count; i++) {
		unsigned long long hash = order[i].hash;

		twins = i && order[i - 1].hash == hash ? twins + 1 : 0;
		doc->sites[order[i].site].id =
			twins ? gm_zone_printf(&doc->zone, "%012llx-%u", hash, twins + 1)
			      : gm_zone_printf(&doc->zone, "%012llx", hash);
	}
	free(order);
}

/* Returns the stack that stands for those of a site of many places: its label says so. */
static struct gm_stack *no_room(struct gm_doc *doc)
{
	struct gm_stack *stack = gm_zone_alloc(&doc->zone, 1, sizeof(*stack));

	stack->frames = gm_zone_alloc(&doc->zone, 1, sizeof(*stack->frames));
	stack->flags = GM_STACK_NO_ROOM;
	stack->label =
		gm_doc_printf(doc, "places that did not fit into the file of %s",
			      gm_size(doc, doc->header->cap_bytes));
	return stack;
}

/*
 * A site without a stack is of many places if the shim says so, or if stacks were dropped: before
 * the file is full for sites, it can be full for stacks.
 */
static void tell_overflow(struct gm_doc *doc)
{
	bool dropped = doc->header->dropped_tables & GM_STACK_TABLES;
	const struct gm_stack *stack = NULL;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct gm_site *site = &doc->sites[i];

		if (site->stack || !(site->record.flags & GM_SITE_OVERFLOW ||
				     (dropped && site->record.allocations)))
			continue;
		stack = stack ? stack : no_room(doc);
		site->stack = stack;
	}
}

static bool is_live(const struct gm_alloc_record *record)
{
	unsigned state = record->state & GM_STATE_MASK;

	return state != GM_STATE_EMPTY && state <= GM_STATE_PENDING;
}

static bool is_sound(const struct gm_alloc_record *record)
{
	return record->kind < GM_KINDS && record->level < GM_LEVELS && record->space < GM_SPACES;
}

/*
 * A running process's file that could not be copied between two updates is copied from its
 * beginning, so a block may be newer than the list of sites. It came after the moment that the
 * figures are of.
 */
static bool is_newer(const struct gm_doc *doc, const struct gm_alloc_record *record)
{
	return gm_reader_torn(doc->reader) && record->site != GM_NONE &&
	       record->site >= doc->sites_count;
}

static void put_block(struct gm_doc *doc, struct gm_block *block,
		      const struct gm_alloc_record *read)
{
	struct gm_alloc_record record = *read;

	record.state &= GM_STATE_MASK;
	if (record.site >= doc->sites_count)
		record.site = GM_NONE;
	gm_block_put(doc, block, &record);
}

/*
 * Gives back the chunk of the file that ends before record `next`, unless some of its records are
 * asked for later: those freed after the work (gm_load_work), and handles, by their mappings.
 */
static void release_chunk(struct gm_doc *doc, uint32_t next, bool *asked_later)
{
	if (next % gm_reader_chunk_records(doc->reader, GM_TABLE_ALLOCS))
		return;
	if (!*asked_later && !doc->options.keep_image)
		gm_reader_release(doc->reader, GM_TABLE_ALLOCS, next - 1);
	*asked_later = false;
}

static void load_blocks(struct gm_doc *doc)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_ALLOCS);
	bool asked_later = false;
	struct gm_alloc_record record;

	/* Of records that are not live pages stay untouched, which take no memory. */
	doc->blocks = gm_zone_alloc(&doc->zone, records, sizeof(*doc->blocks));
	for (uint32_t i = 0; i < records; i++) {
		struct gm_block *block = &doc->blocks[doc->blocks_count];
		bool found =
			gm_reader_get(doc->reader, GM_TABLE_ALLOCS, i, &record, sizeof(record)) &&
			is_live(&record);

		asked_later |= !found ||
			       (record.space != GM_SPACE_POINTER && record.space != GM_SPACE_TORCH);
		if (found && is_sound(&record) && !is_newer(doc, &record)) {
			put_block(doc, block, &record);
			doc->blocks_count++;
		}
		release_chunk(doc, i + 1, &asked_later);
	}
	gm_sort_blocks(doc, doc->blocks, doc->blocks_count);
}

/*
 * Adds the blocks that were freed after the work to the live ones. In a program that runs, and at
 * the moment of --at, the work went on, so there is nothing to add.
 */
void gm_load_work(struct gm_doc *doc)
{
	bool ended = doc->at_ns == GM_NO_BYTES && strcmp(doc->end, "running") != 0;
	uint32_t freed = ended ? gm_reader_freed_after_work(doc->reader, NULL, 0) : 0;
	struct gm_alloc_record *records;
	struct gm_site *site;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		site = &doc->sites[i];
		site->work_bytes = site->record.live_bytes;
		site->work_count = site->record.live_count;
	}
	if (!freed)
		return;
	records = gm_realloc(NULL, freed * sizeof(*records));
	gm_reader_freed_after_work(doc->reader, records, freed);
	doc->freed_blocks = gm_zone_alloc(&doc->zone, freed, sizeof(*doc->freed_blocks));
	for (uint32_t i = 0; i < freed; i++) {
		struct gm_block *block = &doc->freed_blocks[doc->freed_blocks_count];

		if (!is_sound(&records[i]))
			continue;
		put_block(doc, block, &records[i]);
		doc->freed_blocks_count++;
		if (block->site == GM_NONE)
			continue;
		site = &doc->sites[block->site];
		site->work_bytes += gm_site_share(&records[i]);
		site->work_count += gm_copies(records[i].extra);
	}
	free(records);
	gm_sort_blocks(doc, doc->freed_blocks, doc->freed_blocks_count);
}

void gm_load_sites(struct gm_doc *doc)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_SITES);
	uint32_t in_chunk = gm_reader_chunk_records(doc->reader, GM_TABLE_SITES);
	unsigned odd = 0;

	/* First, for when the list is made the file's part that it is made of is given back. */
	doc->sites_count = records;
	load_blocks(doc);
	doc->frames_count = gm_reader_count(doc->reader, GM_TABLE_FRAMES);
	if (doc->frames_count > UINT32_MAX >> GM_INLINED_BITS) /* a hundred million */
		doc->frames_count = UINT32_MAX >> GM_INLINED_BITS;
	doc->frames = gm_zone_alloc(&doc->zone, doc->frames_count, sizeof(*doc->frames));
	doc->stacks_count = gm_reader_count(doc->reader, GM_TABLE_STACKS);
	doc->stacks = gm_zone_alloc(&doc->zone, doc->stacks_count, sizeof(*doc->stacks));
	/* Numbers of sites are used by other tables: a bad one keeps its place, empty and hidden.
	 */
	doc->sites = gm_zone_alloc(&doc->zone, records, sizeof(*doc->sites));
	for (uint32_t i = 0; i < records; i++) {
		struct gm_site *site = &doc->sites[i];

		struct gm_site_record record;

		if (gm_reader_get(doc->reader, GM_TABLE_SITES, i, &record, sizeof(record)))
			gm_site_complete_windows(&record, doc->header);
		else
			record.kind = GM_KINDS;
		if (record.kind >= GM_KINDS || record.level >= GM_LEVELS) {
			record = (struct gm_site_record){.stack = GM_NONE};
			odd++;
		}
		gm_site_put(doc, site, &record);
		site->stack = gm_doc_stack(doc, site->record.stack);
		site->function = gm_doc_function(doc, site->record.function);
		if ((i + 1) % in_chunk == 0 && !doc->options.keep_image)
			gm_reader_release(doc->reader, GM_TABLE_SITES, i);
	}
	if (odd) {
		doc->complete = false;
		doc->lacking |= 1ull << GM_TABLE_SITES;
		gm_doc_warn(doc, "%u of %u sites are damaged and were left out", odd, records);
	}
	gm_reader_release_settled(doc->reader);
	tell_overflow(doc);
	name_sites(doc);
}

void gm_finish_sites(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct gm_site *site = &doc->sites[i];
		struct gm_site_figures *record = &site->record;
		const struct gm_level_record *level =
			gm_doc_level(doc, record->device, record->level);

		gm_site_settle(record, level);
		if (doc->clean_exit && record->level == GM_LEVEL_DRIVER &&
		    gm_kind_owned(record->kind)) {
			site->exit_bytes =
				record->live_bytes - (record->stray_bytes < record->live_bytes
							      ? record->stray_bytes
							      : record->live_bytes);
			site->exit_count =
				record->live_count - (record->stray_count < record->live_count
							      ? record->stray_count
							      : record->live_count);
		}
	}
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *block = &copy;

		if (block->site != GM_NONE && block->physical_bytes != GM_NO_BYTES)
			doc->sites[block->site].physical_bytes +=
				block->physical_bytes * gm_copies(block->extra);
	}
}
