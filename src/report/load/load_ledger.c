/*
 * The ledger: what the driver says the process uses on a device, as a sum of rows. The rows are
 * those of the moment of the sample; tracked memory is split by library where the file still tells
 * how it was divided at that moment (now, or at the peak).
 */
#include "report/load/load_ledger.h"
#include "report/stacks/nccl.h"
#include "account/kinds.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_row(struct gm_doc *doc, struct gm_ledger *ledger, const char *what,
		    const char *library, uint64_t bytes)
{
	struct gm_ledger_row *row;

	for (unsigned i = 0; i < ledger->rows_count; i++) {
		row = &ledger->rows[i];
		if (strcmp(row->what, what) == 0 && library && row->library &&
		    strcmp(row->library, library) == 0) {
			row->bytes += bytes;
			return;
		}
	}
	row = gm_zone_push(&doc->zone, &ledger->rows, &ledger->rows_count, sizeof(*row));
	row->what = what;
	row->library = library;
	row->bytes = bytes;
}

static int compare_rows(const void *a, const void *b)
{
	const struct gm_ledger_row *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return strcmp(x->library ? x->library : "", y->library ? y->library : "");
}

/* NCCL's communicators have a row for each call that made some. */
static const char *what_of(struct gm_doc *doc, const struct gm_site *site)
{
	if (site->torch_segments)
		return "PyTorch reserved";
	return gm_nccl_owns(site)
		       ? gm_zone_printf(&doc->zone, "NCCL, by %s", gm_nccl_call(doc, site))
		       : "allocations";
}

/* Returns the bytes that the device's pools hold in reserve and that are allocated to nobody. */
static uint64_t idle_in_pools(const struct gm_doc *doc, const struct gm_ledger *ledger)
{
	uint64_t idle = 0;

	for (unsigned i = 0; i < doc->pools_count; i++) {
		const struct gm_pool_record *pool = &doc->pools[i];

		if (pool->device == ledger->record.device && pool->type != GM_POOL_IMPORTED &&
		    pool->reserved_bytes > pool->live_bytes)
			idle += pool->reserved_bytes - pool->live_bytes;
	}
	return idle;
}

/* Returns the bytes of each site that lie in private pools of PyTorch's, for graphs. */
static uint64_t *sum_graph_pools(struct gm_doc *doc)
{
	uint64_t *bytes = gm_zone_alloc(&doc->zone, doc->sites_count + 1, sizeof(*bytes));

	for (unsigned i = 0; doc->captures_count && i < doc->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *block = &copy;

		if (block->capture && block->site < doc->sites_count)
			bytes[block->site] += block->bytes;
	}
	return bytes;
}

/*
 * Splits the tracked bytes by library, from live figures or those at the peak. What the driver
 * holds beyond what was asked for (pools' idle reserve; pages, slabs) are rows of their own, so
 * that the rows add up.
 */
static void split_tracked(struct gm_doc *doc, struct gm_ledger *ledger, bool peak)
{
	uint64_t tracked = ledger->record.tracked_physical_bytes, sum = 0;
	const uint64_t *in_graph_pools = sum_graph_pools(doc);
	unsigned first = ledger->rows_count;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];
		uint64_t bytes = peak ? site->record.bytes_at_peak : site->record.live_bytes, pools;

		if (site->record.level != GM_LEVEL_DRIVER || !bytes ||
		    site->record.device != ledger->record.device ||
		    !gm_kind_owned(site->record.kind) || site->record.kind == GM_KIND_MANAGED)
			continue;
		pools = !peak && site->torch_segments ? in_graph_pools[i] : 0;
		pools = pools < bytes ? pools : bytes;
		if (pools)
			add_row(doc, ledger, "private pools of graphs", site->library, pools);
		if (bytes > pools)
			add_row(doc, ledger, what_of(doc, site),
				site->library ? site->library : "unknown", bytes - pools);
		sum += bytes;
	}
	if (ledger->rows_count > first)
		qsort(ledger->rows + first, ledger->rows_count - first, sizeof(*ledger->rows),
		      compare_rows);
	if (sum > tracked) {
		/* Not a moment whose division is known after all. */
		ledger->rows_count = first;
		add_row(doc, ledger, "allocations", NULL, tracked);
	} else {
		uint64_t rest = tracked - sum, idle = peak ? 0 : idle_in_pools(doc, ledger);

		idle = idle < rest ? idle : rest;
		if (idle)
			add_row(doc, ledger, "idle in pools", NULL, idle);
		if (rest > idle)
			add_row(doc, ledger,
				doc->header->sample_bytes ? "rounding to pages, not sampled"
							  : "rounding to pages",
				NULL, rest - idle);
	}
}

/* The parts can be more than the whole: unloading gives back what a first launch took. */
static void add_code_rows(struct gm_doc *doc, struct gm_ledger *ledger)
{
	const struct gm_ledger_record *record = &ledger->record;
	uint64_t code = record->code_bytes == GM_NO_BYTES ? 0 : record->code_bytes, part;

	part = record->launch_bytes < code ? record->launch_bytes : code;
	if (part)
		add_row(doc, ledger, "first launches of kernels", NULL, part);
	code -= part;
	part = record->stream_bytes < code ? record->stream_bytes : code;
	if (part)
		add_row(doc, ledger, "streams", NULL, part);
	code -= part;
	part = record->graph_bytes < code ? record->graph_bytes : code;
	if (part)
		add_row(doc, ledger, "CUDA graphs", NULL, part);
	code -= part;
	if (code)
		add_row(doc, ledger, "modules and limits", NULL, code);
}

static uint64_t known(uint64_t bytes)
{
	return bytes == GM_NO_BYTES ? 0 : bytes;
}

/* The tracker takes the rest for managed memory, as far as there is any: that part is not
 * unexplained. */
static void add_managed_row(struct gm_doc *doc, struct gm_ledger *ledger)
{
	const struct gm_ledger_record *record = &ledger->record;
	uint64_t rows = known(record->context_bytes) + known(record->code_bytes) +
			known(record->tracked_physical_bytes) + record->before_bytes;
	uint64_t rest = record->process_used_bytes > rows ? record->process_used_bytes - rows : 0;

	if (record->unexplained_bytes >= 0 && rest > (uint64_t)record->unexplained_bytes)
		add_row(doc, ledger, "managed memory on the device", NULL,
			rest - (uint64_t)record->unexplained_bytes);
}

static void add_tracked_rows(struct gm_doc *doc, struct gm_ledger *ledger)
{
	const struct gm_ledger_record *record = &ledger->record;
	const struct gm_level_record *level = gm_doc_level(doc, record->device, GM_LEVEL_DRIVER);
	uint64_t tracked = record->tracked_physical_bytes;

	if (tracked == GM_NO_BYTES || !tracked)
		return;
	if (level && tracked == level->physical_bytes)
		split_tracked(doc, ledger, false);
	else if (level && tracked == level->physical_peak_bytes)
		split_tracked(doc, ledger, true);
	else
		add_row(doc, ledger, "allocations", NULL, tracked);
}

static void fill_rows(struct gm_doc *doc, struct gm_ledger *ledger)
{
	const char *before = known(ledger->record.context_bytes)
				     ? "from before the recording"
				     : "from before the recording, with the contexts";

	if (known(ledger->record.context_bytes))
		add_row(doc, ledger, "context", NULL, ledger->record.context_bytes);
	if (ledger->record.before_bytes)
		add_row(doc, ledger, before, NULL, ledger->record.before_bytes);
	add_code_rows(doc, ledger);
	add_tracked_rows(doc, ledger);
	add_managed_row(doc, ledger);
}

static int compare_samples(const void *a, const void *b)
{
	const struct gm_ledger_record *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* The table is a ring behind its first records: time orders it. */
static void load_history(struct gm_doc *doc, struct gm_ledger *ledger)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_LEDGER_HISTORY);

	for (uint32_t i = 0; i < records; i++) {
		struct gm_ledger_record record;

		if (!gm_reader_get(doc->reader, GM_TABLE_LEDGER_HISTORY, i, &record,
				   sizeof(record)) ||
		    record.device != ledger->record.device ||
		    record.source != ledger->record.source)
			continue;
		*(struct gm_ledger_record *)gm_zone_push(&doc->zone, &ledger->history,
							 &ledger->history_count, sizeof(record)) =
			record;
	}
	if (ledger->history_count)
		qsort(ledger->history, ledger->history_count, sizeof(*ledger->history),
		      compare_samples);
}

/* Figures of a file are anybody's: the difference is taken of unsigned numbers. */
static uint64_t growth(const struct gm_ledger_record *record)
{
	return record->unexplained_bytes > record->unexplained_first_bytes
		       ? (uint64_t)record->unexplained_bytes -
				 (uint64_t)record->unexplained_first_bytes
		       : 0;
}

void gm_load_ledger(struct gm_doc *doc)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_LEDGER);

	for (uint32_t i = 0; i < records && i < 4096; i++) {
		struct gm_ledger_record record;
		struct gm_ledger *ledger;

		if (!gm_reader_get(doc->reader, GM_TABLE_LEDGER, i, &record, sizeof(record)) ||
		    !record.samples || record.source == GM_LEDGER_NONE ||
		    record.source > GM_LEDGER_DEVICE_DELTA)
			continue;
		ledger =
			gm_zone_push(&doc->zone, &doc->ledger, &doc->ledger_count, sizeof(*ledger));
		ledger->record = record;
		ledger->unexplained_growth_bytes = GM_NO_BYTES;
		if (record.samples > 1)
			ledger->unexplained_growth_bytes = growth(&record);
		fill_rows(doc, ledger);
		load_history(doc, ledger);
	}
}
