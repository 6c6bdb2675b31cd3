/*
 * `fragmentation`, and its part of the summary: what each level reserves beyond what is used, now
 * and at its peak; where the holes are and who keeps them.
 */
#include "report/render/text/text_holes.h"
#include "report/render/text/text.h"
#include "report/render/text/text_stack.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include <string.h>

static const char *level_title(const struct gm_fragmentation *row)
{
	return strcmp(row->level, "torch") == 0 ? "PyTorch" : row->level;
}

static void print_pinners(struct gm_out *out, struct gm_doc *doc,
			  const struct gm_fragmentation *row)
{
	char holes[GM_FORMAT_BYTES], bytes[GM_FORMAT_BYTES];

	for (unsigned i = 0; i < row->pinners_count && i < out->top; i++) {
		const struct gm_pinner *pinner = &row->pinners[i];

		gm_print(out, GM_BOLD, "\n  %12s", gm_format_size(holes, pinner->hole_bytes));
		gm_printf(out->file, "  of holes beside %llu block%s of %s in all, from\n",
			(unsigned long long)pinner->blocks, pinner->blocks == 1 ? "" : "s",
			gm_format_size(bytes, pinner->bytes));
		gm_print_stack(out, doc->sites[pinner->site].stack, 16);
	}
	gm_print_more(out, "\n  ", row->pinners_count, "site");
}

/* Writes the share of the free bytes that lies outside the largest hole. */
static void external_cell(struct gm_table *table, const struct gm_fragmentation *row)
{
	uint64_t scattered = gm_scattered_bytes(row);
	char percent[GM_FORMAT_BYTES];

	gm_table_cell(table, "%s",
		      scattered == GM_NO_BYTES
			      ? "-"
			      : gm_format_percent(percent, scattered, gm_unused_bytes(row)));
}

/* The cells that all tables of holes share. */
static void figure_cells(struct gm_table *table, const struct gm_fragmentation *row)
{
	uint64_t unused = gm_unused_bytes(row);
	char percent[GM_FORMAT_BYTES];

	gm_table_size(table, row->reserved_bytes);
	gm_table_size(table, row->used_bytes);
	gm_table_size(table, unused);
	gm_table_cell(table, "%s", gm_format_percent(percent, unused, row->reserved_bytes));
	gm_table_size(table, row->largest_free_bytes);
}

static void print_now(struct gm_out *out, struct gm_doc *doc)
{
	static const char *const titles[] = {
		"<device", "<level", "reserved",     "used",
		"free",	   "of it",  "largest hole", "given back by emptying",
		NULL};
	struct gm_table table;

	gm_print(out, GM_BOLD, "Reserved and used now\n");
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < doc->fragmentation_count; i++) {
		const struct gm_fragmentation *row = &doc->fragmentation[i];

		gm_table_cell(&table, "%d", row->device);
		gm_table_cell(&table, "%s", level_title(row));
		figure_cells(&table, row);
		gm_table_size(&table, strcmp(row->level, "torch") == 0 ? row->releasable_bytes
								       : GM_NO_BYTES);
	}
	gm_table_end(out, &table);
}

static void print_peaks(struct gm_out *out, struct gm_doc *doc)
{
	static const char *const titles[] = {"<device",	 "<level", "at",    "reserved",
					     "used",	 "free",   "of it", "largest hole",
					     "external", NULL};
	struct gm_table table;
	char time[GM_FORMAT_BYTES];
	bool any = false;

	for (unsigned i = 0; i < doc->fragmentation_count; i++)
		any = any || doc->fragmentation[i].peak;
	if (!any)
		return;
	gm_heading(out, "At the peak of what is used of each level");
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < doc->fragmentation_count; i++) {
		const struct gm_fragmentation *row = doc->fragmentation[i].peak;

		if (!row)
			continue;
		gm_table_cell(&table, "%d", row->device);
		gm_table_cell(&table, "%s", level_title(row));
		gm_table_cell(&table, "%s", gm_format_time(time, (double)row->time_ns / 1e9));
		figure_cells(&table, row);
		external_cell(&table, row);
	}
	gm_table_end(out, &table);
}

static void print_who(struct gm_out *out, struct gm_doc *doc, const struct gm_fragmentation *row,
		      const char *when)
{
	if (!row || !row->pinners_count)
		return;
	gm_heading(out, "Device %d, %s: live blocks that %s segments from being given back",
		   row->device, level_title(row), when);
	print_pinners(out, doc, row);
}

void gm_text_fragmentation(struct gm_out *out, struct gm_doc *doc)
{
	if (!doc->fragmentation_count) {
		gm_print(out, GM_BOLD, "Nothing is reserved beyond what is used.\n");
		return;
	}
	print_now(out, doc);
	print_peaks(out, doc);
	for (unsigned i = 0; i < doc->fragmentation_count; i++) {
		const struct gm_fragmentation *row = &doc->fragmentation[i];

		print_who(out, doc, row, "keep");
		if (!row->pinners_count)
			print_who(out, doc, row->peak, "kept, at the peak,");
	}
}

static void summary_row(struct gm_table *table, const struct gm_fragmentation *row,
			const char *when)
{
	char device[24];

	if (!row || !row->reserved_bytes)
		return;
	gm_table_cell(table, "%s", gm_device_name(device, row->device));
	gm_table_cell(table, "%s", level_title(row));
	gm_table_cell(table, "%s", when);
	figure_cells(table, row);
	external_cell(table, row);
}

void gm_text_holes(struct gm_out *out, struct gm_doc *doc)
{
	static const char *const titles[] = {"<where", "<level", "<when",	 "reserved", "used",
					     "free",   "of it",	 "largest hole", "external", NULL};
	struct gm_table table;
	uint64_t reserved = 0;

	for (unsigned i = 0; i < doc->fragmentation_count; i++)
		reserved |=
			doc->fragmentation[i].reserved_bytes | (doc->fragmentation[i].peak ? 1 : 0);
	if (!reserved)
		return;
	gm_heading(out, "Fragmentation");
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < doc->fragmentation_count; i++) {
		summary_row(&table, doc->fragmentation[i].peak, "at the peak");
		summary_row(&table, &doc->fragmentation[i], "now");
	}
	gm_table_end(out, &table);
}
