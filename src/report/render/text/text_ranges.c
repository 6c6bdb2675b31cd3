/*
 * Named ranges as text.
 */
#include "report/render/text/text_ranges.h"
#include "report/doc/range_title.h"
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

/*
 * Names of a group are listed where they are few, all known and not read like the group's; else the
 * group stands for them.
 */
static bool is_listed(const struct listing *listing, const struct gm_named_range *range)
{
	struct gm_doc *doc = listing->doc;
	const struct gm_named_range *group;

	if (range->hidden)
		return false;
	if (range->record.group == GM_NONE)
		return true;
	group = &doc->ranges[range->record.group];
	return !listing->groups && !group->record.overflowed && group->record.names > 1 &&
	       group->record.names <= MOST_NAMES &&
	       strcmp(gm_range_title(doc, range->name), gm_range_title(doc, group->name)) != 0;
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
			     gm_range_title(doc, range->name));
}

static const char *signed_size(struct gm_doc *doc, int64_t bytes)
{
	return gm_doc_printf(doc, "%s%s", bytes < 0 ? "-" : "",
			     gm_size(doc, bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes));
}

/* True if the rows are not all of one device. */
static bool has_devices(const struct listing *listing)
{
	const struct gm_named_range *ranges = listing->doc->ranges;
	int first = ranges[listing->rows[0]].record.device;

	for (unsigned i = 1; i < listing->count; i++)
		if (ranges[listing->rows[i]].record.device != first)
			return true;
	return false;
}

static void print_table(struct gm_out *out, const struct listing *listing)
{
	static const char *const titles[] = {"<range",	 "<device",	"times",
					     "lowest",	 "median",	"highest",
					     "retained", "live at end", NULL};
	char device[24];
	struct gm_table table;

	gm_heading(out, "Ranges: lowest, median and highest peak of bytes in use, bytes retained");
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
		gm_table_cell(&table, "%s", signed_size(listing->doc, record->retained_bytes));
		gm_table_size(&table, range->work_bytes);
	}
	if (!has_devices(listing))
		gm_table_drop(&table, 1);
	gm_table_end(out, &table);
}

/*
 * Drops the ranges that have no figures, and around none that has: a library may open a thousand
 * before anything is allocated. Returns how many.
 */
static unsigned drop_idle(struct listing *listing)
{
	const struct gm_doc *doc = listing->doc;
	bool *around = gm_zone_alloc(&listing->doc->zone, doc->ranges_count + 1, sizeof(*around));
	unsigned kept = 0, dropped;

	for (uint32_t i = 0; i < doc->ranges_count; i++)
		for (uint32_t k = i; doc->ranges[i].record.measured && k != GM_NONE && !around[k];
		     k = doc->ranges[k].record.parent)
			around[k] = true;
	for (unsigned i = 0; i < listing->count; i++)
		if (around[listing->rows[i]])
			listing->rows[kept++] = listing->rows[i];
	dropped = listing->count - kept;
	listing->count = kept;
	return dropped;
}

void gm_text_range_table(struct gm_out *out, struct gm_doc *doc)
{
	struct listing listing = make_listing(doc, true);
	unsigned idle = listing.count ? drop_idle(&listing) : 0;

	if (!listing.count)
		return;
	print_table(out, &listing);
	if (idle)
		gm_printf(out->file,
			  "  %u more, in which no memory was in use (ranges lists them)\n", idle);
}

/* ---- each range ---- */

/* Blocks of places that read alike. */
struct place {
	const char *label;
	uint64_t bytes, count;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->label, y->label);
}

static struct place *find_places(struct gm_doc *doc, const struct gm_range_site *sites,
				 unsigned count, unsigned *places_count)
{
	struct place *places = gm_zone_alloc(&doc->zone, count + 1, sizeof(*places));

	*places_count = 0;
	for (unsigned i = 0; i < count; i++) {
		const char *label = gm_stack_label(doc, sites[i].site < doc->sites_count
								? doc->sites[sites[i].site].stack
								: NULL);
		unsigned k = 0;

		while (k < *places_count && strcmp(places[k].label, label) != 0)
			k++;
		*places_count += k == *places_count;
		places[k].label = label;
		places[k].bytes += sites[i].bytes;
		places[k].count += sites[i].count;
	}
	qsort(places, *places_count, sizeof(*places), compare_places);
	return places;
}

static void print_sites(struct gm_out *out, struct gm_doc *doc, const struct gm_range_site *sites,
			unsigned sites_count)
{
	char size[GM_FORMAT_BYTES];
	unsigned count;
	const struct place *places = find_places(doc, sites, sites_count, &count);

	for (unsigned i = 0; i < count && i < out->top; i++) {
		gm_printf(out->file, "    %12s  ", gm_format_size(size, places[i].bytes));
		gm_wrapf(out, 18, "%" PRIu64 " block%s  %s", places[i].count,
			 places[i].count == 1 ? "" : "s", places[i].label);
	}
}

/* "; thread 4711", where the thread is known: a snapshot does not tell it. */
static const char *thread_text(struct gm_doc *doc, const struct gm_range_instance *of)
{
	return of->thread ? gm_doc_printf(doc, "; thread %u", of->thread) : "";
}

/* The name of an instance and a comma, where the range is a group and so does not name it. */
static const char *instance_name(struct gm_doc *doc, const struct gm_named_range *range,
				 const char *name)
{
	const char *read = gm_range_title(doc, name);

	return strcmp(read, gm_range_title(doc, range->name)) ? gm_doc_printf(doc, "%s, ", read)
							      : "";
}

static void print_highest(struct gm_out *out, struct gm_doc *doc,
			  const struct gm_named_range *range)
{
	const struct gm_range_instance *of = &range->record.highest;
	char at[GM_FORMAT_BYTES];

	gm_wrap_from(out, 0, 4,
		     gm_doc_printf(doc,
				   "  highest peak: %s%s at %s (%s at its start, %s retained%s)",
				   instance_name(doc, range, range->highest_name),
				   gm_size(doc, of->peak_bytes),
				   gm_format_time(at, (double)of->peak_ns / 1e9),
				   gm_size(doc, of->start_bytes),
				   signed_size(doc, of->retained_bytes), thread_text(doc, of)));
}

static void print_most_retained(struct gm_out *out, struct gm_doc *doc,
				const struct gm_named_range *range)
{
	const struct gm_range_instance *of = &range->record.most_retained;
	char at[GM_FORMAT_BYTES];

	if (of->retained_bytes <= 0)
		return;
	gm_wrap_from(out, 0, 4,
		     gm_doc_printf(doc, "  retained most: %s%s (%s at its start, peak %s at %s%s)",
				   instance_name(doc, range, range->most_retained_name),
				   signed_size(doc, of->retained_bytes),
				   gm_size(doc, of->start_bytes), gm_size(doc, of->peak_bytes),
				   gm_format_time(at, (double)of->peak_ns / 1e9),
				   thread_text(doc, of)));
	print_sites(out, doc, range->retained_sites, range->retained_sites_count);
}

static void print_range(struct gm_out *out, struct gm_doc *doc, const struct gm_named_range *range)
{
	if (!range->record.measured)
		return;
	gm_heading(out, "%s", gm_range_title(doc, range->path));
	print_highest(out, doc, range);
	print_most_retained(out, doc, range);
	if (!range->work_bytes)
		return;
	gm_wrap_from(out, 0, 4,
		     gm_doc_printf(doc, "  allocated in it%s and live at the end of the work: %s",
				   range->record.source == GM_RANGE_ANNOTATION
					   ? ""
					   : " by its own thread",
				   gm_size(doc, range->work_bytes)));
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
