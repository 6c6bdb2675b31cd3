/*
 * Named ranges as text.
 */
#include "report/render/text/text_ranges.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NAMES 16 /* of a group that are listed one by one */

struct listing {
	struct gm_doc *doc;
	bool groups;	/* without the names of groups */
	uint32_t *rows; /* numbers of ranges, in the order of the table */
	unsigned count;
};

/* Names of a group are listed where they are few and all known; else the group stands for them. */
static bool is_listed(const struct listing *listing, const struct gm_named_range *range)
{
	const struct gm_range_record *group;

	if (range->hidden)
		return false;
	if (range->record.group == GM_NONE)
		return true;
	group = &listing->doc->ranges[range->record.group].record;
	return !listing->groups && !group->overflowed && group->names > 1 &&
	       group->names <= MOST_NAMES;
}

/* A range, its names, its records on other devices, and then what lies in it. */
static void list(struct listing *listing, uint32_t parent)
{
	const struct gm_doc *doc = listing->doc;

	for (uint32_t i = 0; i < doc->ranges_count; i++) {
		if (doc->ranges[i].record.parent != parent || doc->ranges[i].base != i ||
		    doc->ranges[i].record.group != GM_NONE)
			continue;
		for (uint32_t k = i; k < doc->ranges_count; k++) {
			const struct gm_named_range *range = &doc->ranges[k];

			if ((range->base == i || range->record.group == i) &&
			    is_listed(listing, range))
				listing->rows[listing->count++] = k;
		}
		list(listing, i);
	}
}

static struct listing make_listing(struct gm_doc *doc, bool groups)
{
	struct listing listing = {.doc = doc, .groups = groups};

	listing.rows = gm_zone_alloc(&doc->zone, doc->ranges_count + 1, sizeof(*listing.rows));
	list(&listing, GM_NONE);
	return listing;
}

static const char *title(struct gm_doc *doc, const struct gm_named_range *range)
{
	unsigned depth = range->depth + (range->record.group != GM_NONE);

	return gm_doc_printf(doc, "%*s%s%s%s%s", (int)(2 * (depth < 16 ? depth : 16)), "",
			     range->record.source == GM_RANGE_MARKS ? "after the mark " : "",
			     range->domain ? range->domain : "", range->domain ? ": " : "",
			     range->name);
}

static void signed_cell(struct gm_table *table, int64_t bytes)
{
	char size[GM_FORMAT_BYTES];

	gm_table_cell(table, "%s%s", bytes < 0 ? "-" : "",
		      gm_format_size(size, bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes));
}

static void print_table(struct gm_out *out, const struct listing *listing)
{
	static const char *const titles[] = {"<range",	    "<device",	   "times",
					     "lowest peak", "median peak", "highest",
					     "retained",    "live at end", NULL};
	char device[24];
	struct gm_table table;

	gm_heading(out, "Ranges: bytes in use while each was open");
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < listing->count; i++) {
		const struct gm_named_range *range = &listing->doc->ranges[listing->rows[i]];
		const struct gm_range_record *record = &range->record;
		bool measured = record->measured != 0;

		gm_table_cell(&table, "%s", title(listing->doc, range));
		gm_table_cell(&table, "%s",
			      measured ? gm_device_name(device, record->device) : "-");
		gm_table_cell(&table, "%" PRIu64, record->closed);
		gm_table_size(&table, measured ? record->lowest_peak_bytes : GM_NO_BYTES);
		gm_table_size(&table, range->median_peak_bytes);
		gm_table_size(&table, measured ? record->highest.peak_bytes : GM_NO_BYTES);
		signed_cell(&table, record->retained_bytes);
		gm_table_size(&table, range->work_bytes);
	}
	gm_table_end(out, &table);
}

void gm_text_range_table(struct gm_out *out, struct gm_doc *doc)
{
	struct listing listing = make_listing(doc, true);

	if (listing.count)
		print_table(out, &listing);
}

/* ---- each range ---- */

static void print_sites(struct gm_out *out, struct gm_doc *doc, const struct gm_range_site *sites,
			unsigned count)
{
	char size[GM_FORMAT_BYTES];

	for (unsigned i = 0; i < count && i < out->top; i++) {
		const struct gm_stack *stack =
			sites[i].site < doc->sites_count ? doc->sites[sites[i].site].stack : NULL;

		gm_printf(out->file, "    %12s  %" PRIu64 " block%s  %s\n",
			  gm_format_size(size, sites[i].bytes), sites[i].count,
			  sites[i].count == 1 ? "" : "s", gm_stack_label(doc, stack));
	}
}

static void print_instance(struct gm_out *out, const char *what, const char *name,
			   const struct gm_range_instance *of)
{
	char peak[GM_FORMAT_BYTES], at[GM_FORMAT_BYTES], start[GM_FORMAT_BYTES];
	char retained[GM_FORMAT_BYTES];

	gm_printf(out->file, "  %s", what);
	gm_wrapf(out, 4, "%s: %s at %s, %s at its start, %s%s retained, thread %u", name,
		 gm_format_size(peak, of->peak_bytes),
		 gm_format_time(at, (double)of->peak_ns / 1e9),
		 gm_format_size(start, of->start_bytes), of->retained_bytes < 0 ? "-" : "",
		 gm_format_size(retained, of->retained_bytes < 0 ? 0 - (uint64_t)of->retained_bytes
								 : (uint64_t)of->retained_bytes),
		 of->thread);
}

static void print_range(struct gm_out *out, struct gm_doc *doc, const struct gm_named_range *range)
{
	const struct gm_range_record *record = &range->record;
	char size[GM_FORMAT_BYTES];

	if (!record->measured)
		return;
	gm_heading(out, "%s", range->path);
	print_instance(out, "highest peak: ", range->highest_name, &record->highest);
	if (record->most_retained.retained_bytes > 0) {
		print_instance(out, "retained most: ", range->most_retained_name,
			       &record->most_retained);
		print_sites(out, doc, range->retained_sites, range->retained_sites_count);
	}
	if (!range->work_bytes)
		return;
	gm_printf(out->file, "  live at the end of the work, of its own thread's allocations: %s\n",
		  gm_format_size(size, range->work_bytes));
	print_sites(out, doc, range->sites, range->sites_count);
}

void gm_text_ranges(struct gm_out *out, struct gm_doc *doc)
{
	struct listing listing = make_listing(doc, false);

	if (!listing.count) {
		gm_wrap(out, 0,
			"No range was closed. Ranges are NVTX's (torch.cuda.nvtx.range, "
			"torch.autograd.profiler.emit_nvtx), gpumemtrace_range_push of the public "
			"header, and the stretches between marks.");
		return;
	}
	print_table(out, &listing);
	listing = make_listing(doc, true);
	for (unsigned i = 0; i < listing.count && i < out->top; i++)
		print_range(out, doc, &doc->ranges[listing.rows[i]]);
}
