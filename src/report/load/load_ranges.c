/*
 * Named ranges (load_ranges.h).
 */
#include "report/load/load_ranges.h"
#include "account/kinds.h"
#include <stdlib.h>
#include <string.h>

#define MOST_SITES  20
#define MOST_BLOCKS 10000 /* of an instance whose live allocations are looked for */

/* A live block, or the blocks of a site in a range. */
struct share {
	uint32_t range, site;
	uint64_t bytes, serial;
};

/* ---- records ---- */

static int compare_bytes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_signed(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void find_medians(struct gm_named_range *range)
{
	const struct gm_range_record *record = &range->record;
	uint64_t peaks[GM_RANGE_SAMPLES];
	int64_t retained[GM_RANGE_SAMPLES];
	unsigned count = record->samples_count;

	range->median_peak_bytes = GM_NO_BYTES;
	if (!count)
		return;
	for (unsigned i = 0; i < count; i++) {
		peaks[i] = record->samples[i].peak_bytes;
		retained[i] = record->samples[i].retained_bytes;
	}
	qsort(peaks, count, sizeof(*peaks), compare_bytes);
	qsort(retained, count, sizeof(*retained), compare_signed);
	range->median_peak_bytes = peaks[(count - 1) / 2];
	range->median_retained_bytes = retained[(count - 1) / 2];
}

/* Parents and groups lie before a record in the table; a damaged file may say otherwise. */
static void check_links(struct gm_range_record *record, uint32_t index, uint32_t count)
{
	if (record->parent >= index)
		record->parent = GM_NONE;
	if (record->group >= index)
		record->group = GM_NONE;
	if (record->other_device <= index || record->other_device >= count)
		record->other_device = GM_NONE;
	if (record->samples_count > GM_RANGE_SAMPLES)
		record->samples_count = GM_RANGE_SAMPLES;
}

static void load_range(struct gm_doc *doc, uint32_t index, uint32_t count, int device)
{
	struct gm_named_range *range = &doc->ranges[index];
	struct gm_range_record *record = &range->record;
	const char *around = NULL;

	if (!gm_reader_get(doc->reader, GM_TABLE_RANGES, index, record, sizeof(*record)))
		record->parent = record->group = record->other_device = GM_NONE;
	check_links(record, index, count);
	range->name = gm_reader_string(doc->reader, record->name_string);
	range->name = range->name ? range->name : "";
	range->domain = gm_reader_string(doc->reader, record->domain_string);
	range->highest_name = gm_doc_text(doc, record->highest.name, GM_RANGE_NAME_BYTES);
	range->most_retained_name =
		gm_doc_text(doc, record->most_retained.name, GM_RANGE_NAME_BYTES);
	range->hidden = !record->closed || (device >= 0 && record->device != device);
	if (record->parent != GM_NONE) {
		around = doc->ranges[record->parent].path;
		range->depth = doc->ranges[record->parent].depth + 1;
	}
	range->path = around && range->depth < GM_MAX_DEPTH
			      ? gm_doc_printf(doc, "%s / %s", around, range->name)
			      : range->name;
	find_medians(range);
}

static void find_bases(struct gm_doc *doc)
{
	for (uint32_t i = 0; i < doc->ranges_count; i++)
		doc->ranges[i].base = i;
	for (uint32_t i = 0; i < doc->ranges_count; i++)
		if (doc->ranges[i].record.other_device != GM_NONE)
			doc->ranges[doc->ranges[i].record.other_device].base = doc->ranges[i].base;
}

/* ---- what is live ---- */

/* A device's memory in use: PyTorch's blocks instead of its segments, no pool of the program. */
static bool is_in_use(const struct gm_alloc_record *record)
{
	return record->device >= 0 && gm_kind_owned(record->kind) &&
	       (record->level == GM_LEVEL_TORCH ||
		(record->level == GM_LEVEL_DRIVER && !(record->flags & GM_ALLOC_TORCH)));
}

/* The record of a range on a device, or that of one which was never closed; GM_NONE. */
static uint32_t on_device(const struct gm_doc *doc, uint32_t index, int device)
{
	while (index < doc->ranges_count && doc->ranges[index].record.device != device &&
	       doc->ranges[index].record.device != GM_HOST)
		index = doc->ranges[index].record.other_device;
	return index < doc->ranges_count ? index : GM_NONE;
}

static int compare_shares(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->range != y->range)
		return x->range < y->range ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static int compare_serials(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static int compare_sites(const void *a, const void *b)
{
	const struct gm_range_site *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* The sites of shares that are sorted by site, the largest first, not more than MOST_SITES. */
static struct gm_range_site *sum_sites(struct gm_doc *doc, const struct share *shares,
				       unsigned count, unsigned *sites_count)
{
	struct gm_range_site *sites = NULL;

	*sites_count = 0;
	for (unsigned i = 0; i < count; i++) {
		struct gm_range_site *site;

		if (!i || shares[i].site != shares[i - 1].site)
			*(struct gm_range_site *)gm_zone_push(&doc->zone, &sites, sites_count,
							      sizeof(*sites)) =
				(struct gm_range_site){.site = shares[i].site};
		site = &sites[*sites_count - 1];
		site->bytes += shares[i].bytes;
		site->count++;
	}
	if (*sites_count)
		qsort(sites, *sites_count, sizeof(*sites), compare_sites);
	if (*sites_count > MOST_SITES)
		*sites_count = MOST_SITES;
	return sites;
}

static void add_share(const struct gm_doc *doc, struct share *shares, unsigned *count,
		      uint32_t base, const struct gm_alloc_record *block)
{
	uint32_t range = on_device(doc, base, block->device);

	if (range != GM_NONE)
		shares[(*count)++] = (struct share){range, block->site, block->bytes, 0};
}

/*
 * Adds up the live bytes that each range's own thread allocated in it, in the range's record and in
 * its group's.
 */
static void find_own(struct gm_doc *doc)
{
	struct share *shares =
		gm_realloc(NULL, (2 * (size_t)gm_work_blocks(doc) + 1) * sizeof(*shares));
	unsigned count = 0;

	for (unsigned i = 0; i < gm_work_blocks(doc); i++) {
		const struct gm_alloc_record copy = gm_work_block(doc, i), *block = &copy;
		uint32_t base = block->range - 1;

		if (base >= doc->ranges_count || !is_in_use(block))
			continue;
		add_share(doc, shares, &count, base, block);
		if (doc->ranges[base].record.group != GM_NONE)
			add_share(doc, shares, &count, doc->ranges[base].record.group, block);
	}
	qsort(shares, count, sizeof(*shares), compare_shares);
	for (unsigned i = 0, end; i < count; i = end) {
		struct gm_named_range *range = &doc->ranges[shares[i].range];

		for (end = i; end < count && shares[end].range == shares[i].range; end++) {
			range->work_bytes += shares[end].bytes;
			range->work_count++;
		}
		range->sites = sum_sites(doc, shares + i, end - i, &range->sites_count);
	}
	free(shares);
}

/* The first of the shares, which are sorted by serial, that has this serial or a later one. */
static unsigned first_since(const struct share *shares, unsigned count, uint64_t serial)
{
	unsigned low = 0;

	while (low < count) {
		unsigned middle = low + (count - low) / 2;

		if (shares[middle].serial < serial)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

static void find_retained_of(struct gm_doc *doc, struct gm_named_range *range,
			     const struct share *shares, unsigned count)
{
	const struct gm_range_instance *instance = &range->record.most_retained;
	unsigned first = first_since(shares, count, instance->first_serial);
	unsigned past = first_since(shares, count, instance->last_serial + 1);
	unsigned found = 0;
	struct share *own;

	if (range->hidden || instance->retained_bytes <= 0 || past <= first ||
	    past - first > MOST_BLOCKS)
		return;
	own = gm_realloc(NULL, (past - first) * sizeof(*own));
	for (unsigned i = first; i < past; i++)
		if (shares[i].range == (uint32_t)range->record.device)
			own[found++] = shares[i];
	qsort(own, found, sizeof(*own), compare_shares);
	range->retained_sites = sum_sites(doc, own, found, &range->retained_sites_count);
	free(own);
}

/* Finds the live allocations that were made while an instance was open, by their serial numbers. */
static void find_retained(struct gm_doc *doc)
{
	struct share *shares =
		gm_realloc(NULL, ((size_t)gm_work_blocks(doc) + 1) * sizeof(*shares));
	unsigned count = 0;

	for (unsigned i = 0; i < gm_work_blocks(doc); i++) {
		const struct gm_alloc_record copy = gm_work_block(doc, i), *block = &copy;

		if (is_in_use(block))
			shares[count++] = (struct share){(uint32_t)block->device, block->site,
							 block->bytes, block->serial};
	}
	qsort(shares, count, sizeof(*shares), compare_serials);
	for (uint32_t i = 0; i < doc->ranges_count; i++)
		find_retained_of(doc, &doc->ranges[i], shares, count);
	free(shares);
}

void gm_load_ranges(struct gm_doc *doc, int device)
{
	uint32_t count = gm_reader_count(doc->reader, GM_TABLE_RANGES);

	if (doc->at_ns != GM_NO_BYTES || !count)
		return;
	count = count < GM_RANGE_RECORDS ? count : GM_RANGE_RECORDS;
	doc->ranges = gm_zone_alloc(&doc->zone, count, sizeof(*doc->ranges));
	doc->ranges_count = count;
	for (uint32_t i = 0; i < count; i++)
		load_range(doc, i, count, device);
	find_bases(doc);
	if (doc->header->sample_bytes)
		return; /* most blocks have no record that tells their range */
	find_own(doc);
	find_retained(doc);
}
