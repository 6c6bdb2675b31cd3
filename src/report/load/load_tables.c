/*
 * The tables that are lists of figures: devices, levels, usage, pools and the like. Each list is
 * copied whole; records that say nothing are left out.
 */
#include "report/load/internal.h"
#include "account/kinds.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The table of plain tables, one row each: the destination and the size of the records. */
struct plain {
	enum gm_table_id table;
	size_t record_bytes, array, count;
};

#define PLAIN(table, type, name)                                                                   \
	{                                                                                          \
		table, sizeof(struct type), offsetof(struct gm_doc, name),                         \
			offsetof(struct gm_doc, name##_count)                                      \
	}

static const struct plain plains[] = {
	PLAIN(GM_TABLE_LEVELS, gm_level_record, levels),
	PLAIN(GM_TABLE_USAGE, gm_usage_record, usage),
	PLAIN(GM_TABLE_POOLS, gm_pool_record, pools),
	PLAIN(GM_TABLE_VMM, gm_vmm_record, vmm),
	PLAIN(GM_TABLE_TORCH, gm_torch_record, torches),
	PLAIN(GM_TABLE_RETRIES, gm_retry_record, retries),
	PLAIN(GM_TABLE_IMPLICIT, gm_implicit_record, implicit),
	PLAIN(GM_TABLE_COSTS, gm_cost_record, costs),
	PLAIN(GM_TABLE_FREED_EXPORTS, gm_freed_export_record, freed_exports),
	PLAIN(GM_TABLE_CONTEXTS, gm_context_record, contexts),
	PLAIN(GM_TABLE_TIMELINE, gm_timeline_record, timeline),
};

static void load_plain(struct gm_doc *doc, const struct plain *plain)
{
	uint32_t records = gm_reader_count(doc->reader, plain->table);
	unsigned char *array = gm_zone_alloc(&doc->zone, records, plain->record_bytes);
	unsigned filled = 0;

	for (uint32_t i = 0; i < records; i++)
		if (gm_reader_get(doc->reader, plain->table, i,
				  array + filled * plain->record_bytes, plain->record_bytes))
			filled++;
	memcpy((char *)doc + plain->array, &array, sizeof(array));
	memcpy((char *)doc + plain->count, &filled, sizeof(filled));
}

static const char *uuid_text(struct gm_doc *doc, const uint8_t uuid[16])
{
	static const uint8_t none[16];
	char hex[33];

	if (memcmp(uuid, none, sizeof(none)) == 0)
		return NULL;
	for (int i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", uuid[i]);
	return gm_zone_printf(&doc->zone, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
			      hex + 16, hex + 20);
}

static void load_devices(struct gm_doc *doc)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_DEVICES);

	for (uint32_t i = 0; i < records && i < 4096; i++) {
		struct gm_device_record record;
		struct gm_device *device;

		if (!gm_reader_get(doc->reader, GM_TABLE_DEVICES, i, &record, sizeof(record)) ||
		    !record.used)
			continue;
		device = gm_zone_push(&doc->zone, &doc->devices, &doc->devices_count,
				      sizeof(*device));
		device->record = record;
		device->index = (int)i;
		device->name = gm_reader_string(doc->reader, record.name_string);
		device->uuid = uuid_text(doc, record.uuid);
	}
}

static void load_marks(struct gm_doc *doc)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_MARKS);

	doc->marks = gm_zone_alloc(&doc->zone, records, sizeof(*doc->marks));
	for (uint32_t i = 0; i < records; i++) {
		struct gm_mark *mark = &doc->marks[doc->marks_count];

		if (!gm_reader_get(doc->reader, GM_TABLE_MARKS, i, &mark->record,
				   sizeof(mark->record)))
			continue;
		mark->name = gm_reader_string(doc->reader, mark->record.name_string);
		doc->marks_count++;
	}
}

static int compare_levels(const void *a, const void *b)
{
	const struct gm_level_record *x = a, *y = b;

	return x->device != y->device ? x->device - y->device : x->level - y->level;
}

/* Devices first and the host last, as people read a table. */
static int compare_usage(const void *a, const void *b)
{
	const struct gm_usage_record *x = a, *y = b;
	int dx = x->device == GM_HOST ? INT16_MAX : x->device;
	int dy = y->device == GM_HOST ? INT16_MAX : y->device;

	return dx != dy ? dx - dy : x->kind - y->kind;
}

/* Leaves out rows whose numbers no version of the format has. */
static void drop_impossible(struct gm_doc *doc)
{
	unsigned n = 0;

	for (unsigned i = 0; i < doc->usage_count; i++)
		if (gm_in_usage(GM_LEVEL_DRIVER, doc->usage[i].kind) &&
		    doc->usage[i].device >= GM_HOST &&
		    (doc->usage[i].allocations || doc->usage[i].failures ||
		     doc->usage[i].current_count))
			doc->usage[n++] = doc->usage[i];
	doc->usage_count = n;
	n = 0;
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level < GM_LEVELS && doc->levels[i].device >= GM_HOST)
			doc->levels[n++] = doc->levels[i];
	doc->levels_count = n;
	n = 0;
	for (unsigned i = 0; i < doc->timeline_count; i++)
		if (doc->timeline[i].series < GM_SERIES_COUNT && doc->timeline[i].width_ns)
			doc->timeline[n++] = doc->timeline[i];
	doc->timeline_count = n;
	for (unsigned i = 0; i < doc->timeline_count; i++)
		if (doc->timeline[i].points > GM_TIMELINE_POINTS)
			doc->timeline[i].points = GM_TIMELINE_POINTS;
	n = 0;
	for (unsigned i = 0; i < doc->pools_count; i++)
		if (doc->pools[i].state == GM_STATE_LIVE || doc->pools[i].state == GM_STATE_PENDING)
			doc->pools[n++] = doc->pools[i];
	doc->pools_count = n;
	n = 0;
	for (unsigned i = 0; i < doc->implicit_count; i++)
		if (doc->implicit[i].cause < GM_IMPLICIT_CAUSES)
			doc->implicit[n++] = doc->implicit[i];
	doc->implicit_count = n;
}

/*
 * Separates the records in which the program's own allocator stands in the place of PyTorch's: no
 * block of theirs is known.
 */
static void split_torches(struct gm_doc *doc)
{
	unsigned n = 0;

	for (unsigned i = 0; i < doc->torches_count; i++) {
		const struct gm_torch_record *torch = &doc->torches[i];

		if (torch->allocator == GM_TORCH_PLUGGABLE)
			*(struct gm_torch_record *)gm_zone_push(&doc->zone, &doc->pluggables,
								&doc->pluggables_count,
								sizeof(*torch)) = *torch;
		else
			doc->torches[n++] = *torch;
	}
	doc->torches_count = n;
}

void gm_load_tables(struct gm_doc *doc)
{
	for (size_t i = 0; i < sizeof(plains) / sizeof(plains[0]); i++)
		load_plain(doc, &plains[i]);
	drop_impossible(doc);
	if (doc->levels_count)
		qsort(doc->levels, doc->levels_count, sizeof(*doc->levels), compare_levels);
	if (doc->usage_count)
		qsort(doc->usage, doc->usage_count, sizeof(*doc->usage), compare_usage);
	split_torches(doc);
	load_devices(doc);
	load_marks(doc);
	doc->torch = doc->torches_count > 0;
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_TORCH && doc->levels[i].allocations)
			doc->torch = true;
}
