/*
 * Sites with their stacks, and the live allocations. Frames are symbolized when a stack is first
 * asked for, each frame record once.
 */
#include "report/load/load.h"
#include "report/support/progress.h"
#include "report/stacks/rules.h"
#include "report/symbols/symbolize.h"
#include <stdlib.h>
#include <string.h>

#define MAX_INLINED 32 /* frames that one address may become */

static void expand_native(struct gm_doc *doc, const struct gm_frame_record *record,
			  struct gm_frame_list *list)
{
	struct gm_frame frames[MAX_INLINED];
	struct gm_module_record module;
	const char *path = NULL;

	memset(frames, 0, sizeof(frames));
	list->count = 1;
	if (gm_reader_get(doc->reader, GM_TABLE_MODULES, record->native.module, &module,
			  sizeof(module)))
		path = gm_reader_string(doc->reader, module.path_string);
	if (path && doc->symbols) {
		list->count = gm_symbols_look_up(doc->symbols, &module, path, record->native.offset,
						 frames, MAX_INLINED);
	} else {
		frames[0].module = path;
		frames[0].offset = record->native.offset;
	}
	list->frames = gm_zone_alloc(&doc->zone, list->count, sizeof(*list->frames));
	memcpy(list->frames, frames, list->count * sizeof(*frames));
}

static void expand_python(struct gm_doc *doc, const struct gm_frame_record *record,
			  struct gm_frame_list *list)
{
	struct gm_frame *frame = gm_zone_alloc(&doc->zone, 1, sizeof(*frame));

	frame->python = true;
	frame->function = gm_reader_string(doc->reader, record->python.function_string);
	frame->file = gm_reader_string(doc->reader, record->python.file_string);
	frame->line = record->python.line;
	list->frames = frame;
	list->count = 1;
}

/* The frames of a frame record; an empty list if it is out of range or of an unknown kind. */
static const struct gm_frame_list *expand_frame(struct gm_doc *doc, uint32_t number)
{
	static const struct gm_frame_list none;
	struct gm_frame_record record;
	struct gm_frame_list *list;

	if (number >= doc->frames_count)
		return &none;
	list = &doc->frames[number];
	if (list->frames)
		return list;
	if (!gm_reader_get(doc->reader, GM_TABLE_FRAMES, number, &record, sizeof(record)))
		return &none;
	if (record.kind == GM_FRAME_NATIVE)
		expand_native(doc, &record, list);
	else if (record.kind == GM_FRAME_PYTHON)
		expand_python(doc, &record, list);
	else
		return &none;
	gm_progress("naming functions", number, doc->frames_count);
	for (unsigned i = 0; i < list->count; i++) {
		gm_rules_apply(&list->frames[i]);
		list->frames[i].memo = gm_zone_alloc(&doc->zone, 1, sizeof(struct gm_frame_memo));
	}
	return list;
}

static void expand_stack(struct gm_doc *doc, uint32_t number, struct gm_stack *stack)
{
	const struct gm_frame_list *lists[2 * GM_MAX_DEPTH];
	struct gm_stack_record record;
	unsigned used = 0, count = 0;

	gm_reader_get(doc->reader, GM_TABLE_STACKS, number, &record, sizeof(record));
	for (unsigned i = 0; i < record.frames && used < 2 * GM_MAX_DEPTH; i++) {
		uint32_t frame;

		if (!gm_reader_get(doc->reader, GM_TABLE_STACK_FRAMES, record.first + i, &frame,
				   sizeof(frame)))
			break;
		lists[used] = expand_frame(doc, frame);
		count += lists[used++]->count;
	}
	stack->frames = gm_zone_alloc(&doc->zone, count + 1, sizeof(*stack->frames));
	stack->flags = record.flags;
	for (unsigned i = 0; i < used; i++) {
		if (lists[i]->count)
			memcpy(stack->frames + stack->count, lists[i]->frames,
			       lists[i]->count * sizeof(*stack->frames));
		stack->count += lists[i]->count;
	}
	count = gm_entry_frames(stack->frames, stack->count);
	stack->frames += count;
	stack->count -= count;
}

const struct gm_stack *gm_doc_stack(struct gm_doc *doc, uint32_t number)
{
	if (number >= doc->stacks_count)
		return NULL;
	if (!doc->stacks[number].frames)
		expand_stack(doc, number, &doc->stacks[number]);
	return &doc->stacks[number];
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;

	/* FNV-1a */
	while (count--)
		hash = (hash ^ *at++) * 1099511628211u;
	return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return text ? hash_bytes(hash, text, strlen(text) + 1) : hash_bytes(hash, "\1", 1);
}

/* A name for a site that two runs of the same program share, whatever addresses they had. */
static uint64_t site_hash(const struct gm_site *site, bool with_device)
{
	const struct gm_site_record *record = &site->record;
	uint64_t hash = 14695981039346656037u;

	hash = hash_bytes(hash, &record->kind, sizeof(record->kind));
	hash = hash_bytes(hash, &record->level, sizeof(record->level));
	if (with_device)
		hash = hash_bytes(hash, &record->device, sizeof(record->device));
	for (unsigned i = 0; site->stack && i < site->stack->count; i++) {
		const struct gm_frame *frame = &site->stack->frames[i];
		const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;

		hash = hash_text(hash, frame->function);
		hash = hash_bytes(hash, &frame->line, sizeof(frame->line));
		hash = hash_text(hash, slash ? slash + 1 : frame->module);
		if (!frame->function)
			hash = hash_bytes(hash, &frame->offset, sizeof(frame->offset));
	}
	if (!site->stack)
		hash = hash_text(hash, site->function);
	return hash;
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
		doc->sites[i].place = site_hash(&doc->sites[i], false);
		order[i] = (struct id_order){site_hash(&doc->sites[i], true) >> 16, i};
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

static int compare_blocks(const void *a, const void *b)
{
	const struct gm_alloc_record *x = &((const struct gm_block *)a)->record;
	const struct gm_alloc_record *y = &((const struct gm_block *)b)->record;

	if (x->device != y->device)
		return x->device - y->device;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

void gm_sort_blocks(struct gm_doc *doc)
{
	if (doc->blocks_count)
		qsort(doc->blocks, doc->blocks_count, sizeof(*doc->blocks), compare_blocks);
}

static void load_blocks(struct gm_doc *doc)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_ALLOCS);
	uint32_t live = 0;
	struct gm_alloc_record record;

	for (uint32_t i = 0; i < records; i++)
		if (gm_reader_get(doc->reader, GM_TABLE_ALLOCS, i, &record, sizeof(record)) &&
		    record.state != GM_STATE_EMPTY && record.state <= GM_STATE_PENDING)
			live++;
	doc->blocks = gm_zone_alloc(&doc->zone, live, sizeof(*doc->blocks));
	for (uint32_t i = 0; i < records && doc->blocks_count < live; i++) {
		struct gm_block *block = &doc->blocks[doc->blocks_count];

		if (!gm_reader_get(doc->reader, GM_TABLE_ALLOCS, i, &record, sizeof(record)) ||
		    record.state == GM_STATE_EMPTY || record.state > GM_STATE_PENDING ||
		    record.kind >= GM_KINDS || record.level >= GM_LEVELS ||
		    record.space >= GM_SPACES)
			continue;
		block->record = record;
		if (record.site >= doc->sites_count)
			block->record.site = GM_NONE;
		doc->blocks_count++;
	}
	gm_sort_blocks(doc);
}

void gm_load_sites(struct gm_doc *doc)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_SITES);
	unsigned odd = 0;

	doc->frames_count = gm_reader_count(doc->reader, GM_TABLE_FRAMES);
	doc->frames = gm_zone_alloc(&doc->zone, doc->frames_count, sizeof(*doc->frames));
	doc->stacks_count = gm_reader_count(doc->reader, GM_TABLE_STACKS);
	doc->stacks = gm_zone_alloc(&doc->zone, doc->stacks_count, sizeof(*doc->stacks));
	/* Numbers of sites are used by other tables: a bad one keeps its place, empty and hidden.
	 */
	doc->sites = gm_zone_alloc(&doc->zone, records, sizeof(*doc->sites));
	doc->sites_count = records;
	for (uint32_t i = 0; i < records; i++) {
		struct gm_site *site = &doc->sites[i];

		if (!gm_reader_site(doc->reader, i, &site->record) ||
		    site->record.kind >= GM_KINDS || site->record.level >= GM_LEVELS) {
			memset(&site->record, 0, sizeof(site->record));
			site->record.stack = GM_NONE;
			odd++;
		}
		site->stack = gm_doc_stack(doc, site->record.stack);
		site->function = gm_doc_function(doc, site->record.function);
	}
	if (odd) {
		doc->complete = false;
		doc->lacking |= 1ull << GM_TABLE_SITES;
		gm_doc_warn(doc, "%u of %u sites are damaged and were left out", odd, records);
	}
	name_sites(doc);
	load_blocks(doc);
}

void gm_finish_sites(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct gm_site *site = &doc->sites[i];
		struct gm_site_record *record = &site->record;
		const struct gm_level_record *level =
			gm_doc_level(doc, record->device, record->level);

		if (level && record->epoch < level->epoch)
			record->bytes_at_peak = record->live_bytes;
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
		const struct gm_alloc_record *block = &doc->blocks[i].record;

		if (block->site != GM_NONE && block->physical_bytes != GM_NO_BYTES)
			doc->sites[block->site].physical_bytes += block->physical_bytes;
	}
}
