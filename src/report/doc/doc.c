/*
 * Questions that the tables of a document answer, see doc.h.
 */
#include "report/doc/doc.h"
#include "account/sampling.h"
#include "report/support/format.h"
#include "report/support/memory.h"
#include "report/support/sort.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double gm_seconds(uint64_t ns)
{
	return ns == GM_NO_BYTES ? NAN : (double)ns / 1e9;
}

void gm_doc_warn(struct gm_doc *doc, const char *format, ...)
{
	const char **slot;
	va_list args;
	char text[1024];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	slot = gm_zone_push(&doc->zone, &doc->warnings, &doc->warnings_count, sizeof(*slot));
	*slot = gm_zone_strdup(&doc->zone, text);
}

uint64_t gm_site_value(const struct gm_site *site, const struct gm_options *options)
{
	const struct gm_site_figures *record = &site->record;
	const char *sort = options->sort ? options->sort : "live";

	if (options->at_peak)
		return record->bytes_at_peak;
	if (strcmp(sort, "peak") == 0)
		return record->peak_bytes;
	if (strcmp(sort, "total") == 0)
		return record->allocated_bytes;
	if (strcmp(sort, "count") == 0)
		return record->allocations;
	if (strcmp(sort, "churn") == 0)
		return record->allocated_bytes < record->freed_bytes ? record->allocated_bytes
								     : record->freed_bytes;
	return record->live_bytes;
}

struct gm_site_record gm_site_record_of(const struct gm_site *site)
{
	struct gm_site_record record = {.figures = site->record};

	for (unsigned i = 0; i < GM_WINDOWS; i++)
		record.windows[i] = gm_site_window(site, i);
	return record;
}

void gm_site_put_windows(struct gm_doc *doc, struct gm_site *site,
			 const struct gm_window windows[GM_WINDOWS])
{
	unsigned current = site->record.window_current, had = __builtin_popcount(site->changed);
	struct gm_window changed[GM_WINDOWS];
	uint64_t before = 0;
	unsigned count = 0;

	site->changed = 0;
	for (unsigned i = 0; i < GM_WINDOWS && i <= current; i++) {
		if (windows[i].min_bytes != before || windows[i].max_bytes != before ||
		    windows[i].last_bytes != before) {
			site->changed |= 1u << i;
			changed[count++] = windows[i];
		}
		before = windows[i].last_bytes;
	}
	if (count > had)
		site->windows = gm_zone_alloc(&doc->zone, count, sizeof(*changed));
	if (count)
		memcpy(site->windows, changed, count * sizeof(*changed));
}

void gm_site_put(struct gm_doc *doc, struct gm_site *site, const struct gm_site_record *record)
{
	site->record = record->figures;
	gm_site_put_windows(doc, site, record->windows);
}

const struct gm_level_record *gm_doc_level(const struct gm_doc *doc, int device, unsigned level)
{
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].device == device && doc->levels[i].level == level)
			return &doc->levels[i];
	return NULL;
}

const struct gm_device *gm_doc_device(const struct gm_doc *doc, int device)
{
	for (unsigned i = 0; i < doc->devices_count; i++)
		if (doc->devices[i].index == device)
			return &doc->devices[i];
	return NULL;
}

const struct gm_imported *gm_doc_imported(const struct gm_doc *doc, int device)
{
	for (unsigned i = 0; i < doc->imported_count; i++)
		if (doc->imported[i].device == device)
			return &doc->imported[i];
	return NULL;
}

uint64_t gm_device_limit(const struct gm_device *device)
{
	if (!device)
		return GM_NO_BYTES;
	if (device->record.capacity_bytes != GM_NO_BYTES && device->record.capacity_bytes)
		return device->record.capacity_bytes;
	return device->record.total_bytes ? device->record.total_bytes : GM_NO_BYTES;
}

const char *gm_doc_function(const struct gm_doc *doc, uint32_t function)
{
	struct gm_function_record record;

	if (!gm_reader_get(doc->reader, GM_TABLE_FUNCTIONS, function, &record, sizeof(record)))
		return NULL;
	return gm_reader_string(doc->reader, record.name_string);
}

const char *gm_doc_variable(struct gm_doc *doc, const char *text, const char *name)
{
	size_t length = strlen(name);

	while (text && *text) {
		size_t line = strcspn(text, "\n");

		if (line > length && text[length] == '=' && strncmp(text, name, length) == 0)
			return gm_zone_strndup(&doc->zone, text + length + 1, line - length - 1);
		text += line;
		text += *text == '\n';
	}
	return NULL;
}

const char *gm_books_gap(struct gm_doc *doc, uint64_t tables)
{
	uint64_t dropped = doc->header ? doc->header->dropped_records : 0;
	uint64_t of = dropped && doc->header->dropped_tables ? doc->header->dropped_tables
							     : GM_ALL_TABLES;

	if (doc->lacking & tables)
		return "the file is damaged";
	if (!dropped || !(of & tables))
		return NULL;
	return gm_doc_printf(doc, "%llu record%s dropped", (unsigned long long)dropped,
			     dropped == 1 ? " was" : "s were");
}

const char *gm_sampled(struct gm_doc *doc)
{
	if (!doc->header || !doc->header->sample_bytes)
		return NULL;
	return gm_doc_printf(doc, "the recording is sampled (GPUMEMTRACE_SAMPLE=%llu)",
			     (unsigned long long)doc->header->sample_bytes);
}

uint64_t gm_site_error(const struct gm_doc *doc, const struct gm_site *site, uint64_t bytes)
{
	if (!doc->header->sample_bytes || !bytes)
		return 0;
	return gm_sample_error(bytes, site->record.min_alloc_bytes, doc->header->sample_bytes);
}

struct gm_site_errors gm_site_errors(const struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_site_figures *record = &site->record;

	if (!doc->header->sample_bytes)
		return (struct gm_site_errors){GM_NO_BYTES, GM_NO_BYTES, GM_NO_BYTES};
	return (struct gm_site_errors){gm_site_error(doc, site, record->live_bytes),
				       gm_site_error(doc, site, record->bytes_at_peak),
				       gm_site_error(doc, site, record->allocated_bytes)};
}

const char *gm_exit_unknown(const struct gm_doc *doc)
{
	return doc->clean_exit			  ? "the file is damaged"
	       : doc->header->period_ended_ns	  ? "the recording ended before the process"
	       : strcmp(doc->end, "running") == 0 ? "the process still runs"
						  : "the process was killed";
}

const char *gm_doc_text(struct gm_doc *doc, const char *text, size_t bytes)
{
	char *copy = gm_zone_strndup(&doc->zone, text, strnlen(text, bytes));

	for (char *at = copy; *at;) {
		unsigned length = gm_utf8_length((const unsigned char *)at, strlen(at));

		if (!length)
			*at = '?';
		at += length ? length : 1;
	}
	return copy;
}

const char *gm_size(struct gm_doc *doc, uint64_t bytes)
{
	char text[GM_FORMAT_BYTES];

	return gm_zone_strdup(&doc->zone, gm_format_size(text, bytes));
}

/* Returns the number in `commons` of these members. */
static uint32_t number_of_common(struct gm_doc *doc, const struct gm_alloc_record *common)
{
	uint64_t words[sizeof(*common) / sizeof(uint64_t)], hash = 0;
	uint32_t *latest;

	memcpy(words, common, sizeof(words));
	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
	/* Members that lost their slot to others are listed again when they are met again. */
	latest = &doc->latest_commons[(hash >> 32) % GM_COMMON_SLOTS];
	if (!*latest || memcmp(&doc->commons[*latest - 1], common, sizeof(*common)) != 0) {
		*(struct gm_alloc_record *)gm_zone_push(
			&doc->zone, &doc->commons, &doc->commons_count, sizeof(*common)) = *common;
		*latest = doc->commons_count;
	}
	return *latest - 1;
}

void gm_block_put(struct gm_doc *doc, struct gm_block *block, const struct gm_alloc_record *record)
{
	struct gm_alloc_record common = *record;

	*block = (struct gm_block){.key = record->key,
				   .bytes = record->bytes,
				   .physical_bytes = record->physical_bytes,
				   .serial = record->serial,
				   .time_ns = record->time_ns,
				   .site = record->site};
	common.key = common.bytes = common.physical_bytes = common.serial = common.time_ns = 0;
	common.site = 0;
	block->common = number_of_common(doc, &common);
}

static bool in_order(const struct gm_doc *doc, const struct gm_block *x, const struct gm_block *y)
{
	int device = gm_block_device(doc, x), next = gm_block_device(doc, y);

	if (device != next)
		return device < next;
	return x->key != y->key ? x->key < y->key : x->serial < y->serial;
}

/* Moves each block to its place: at i comes the block that was at order[i].number. */
static void permute(struct gm_block *blocks, struct gm_keyed *order, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct gm_block first = blocks[i];
		unsigned at = i, next;

		for (; (next = order[at].number) != i; at = next) {
			blocks[at] = blocks[next];
			order[at].number = at;
		}
		blocks[at] = first;
		order[at].number = at;
	}
}

void gm_sort_blocks(const struct gm_doc *doc, struct gm_block *blocks, unsigned count)
{
	struct gm_keyed *order;
	unsigned i = 1;

	/* An allocator that gives out rising addresses leaves nothing to do. */
	while (i < count && in_order(doc, &blocks[i - 1], &blocks[i]))
		i++;
	if (i >= count)
		return;
	order = gm_realloc(NULL, count * sizeof(*order));
	for (i = 0; i < count; i++)
		order[i] = (struct gm_keyed){blocks[i].serial, i};
	gm_sort_keyed(order, count);
	for (i = 0; i < count; i++)
		order[i].key = blocks[order[i].number].key;
	gm_sort_keyed(order, count);
	for (i = 0; i < count; i++)
		order[i].key = (uint32_t)gm_block_device(doc, &blocks[order[i].number]) ^ 1u << 31;
	gm_sort_keyed(order, count);
	permute(blocks, order, count);
	free(order);
}

uint64_t gm_doc_failed_calls(const struct gm_doc *doc)
{
	uint64_t failed = 0;

	for (unsigned i = 0; i < doc->usage_count; i++)
		failed += doc->usage[i].failures;
	return failed;
}
