/*
 * A line per site, or per named range, by RFC 4180, for spreadsheets and for engines that read CSV
 * (docs/fleet.md).
 */
#include "report/doc/enum_names.h"
#include "report/doc/options.h"
#include "report/render/export/internal.h"
#include "report/stacks/labels.h"
#include "report/support/print.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void write_quoted(FILE *file, const char *text)
{
	bool formula = strchr("=+-@", text[0]) != NULL; /* to a spreadsheet */

	if (!strpbrk(text, ",\"")) {
		fprintf(file, "%s%s", formula ? "'" : "", text);
		return;
	}
	fputs(formula ? "\"'" : "\"", file);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', file);
		fputc(*text, file);
	}
	fputc('"', file);
}

static void write_cell(FILE *file, const char *text)
{
	char *name;

	if (!text || !*text)
		return;
	name = gm_harmless(text);
	write_quoted(file, name);
	free(name);
}

static void write_head(FILE *file)
{
	fprintf(file, "id,level,kind,device,verdict,live_bytes,live_count,peak_bytes,bytes_at_peak,"
		      "allocated_bytes,allocations,frees,first_s,last_s,library,category,phase,"
		      "place,program,revision,job,host,rank,pid,started_at,live_error_bytes,"
		      "at_peak_error_bytes,allocated_error_bytes\r\n");
}

/* The cells that say which run a row is of. */
static void write_run(FILE *file, const struct gm_doc *doc)
{
	const char *const texts[] = {doc->program, doc->revision, doc->job, doc->host};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		fputc(',', file);
		write_cell(file, texts[i]);
	}
	if (doc->header->rank >= 0)
		fprintf(file, ",%d", doc->header->rank);
	else
		fputc(',', file);
	fprintf(file, ",%u,", doc->header->pid);
	write_cell(file, doc->started_at);
}

/* A cell, empty where the number is not known. */
static void write_number(FILE *file, uint64_t number)
{
	if (number != GM_NO_BYTES)
		fprintf(file, "%" PRIu64, number);
}

static void write_bytes(FILE *file, uint64_t bytes)
{
	write_number(file, bytes);
	fputc(',', file);
}

static void write_seconds(FILE *file, uint64_t ns)
{
	if (ns != GM_NO_BYTES)
		fprintf(file, "%.9f", (double)ns / 1e9);
	fputc(',', file);
}

static void write_site(FILE *file, struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_site_errors errors = gm_site_errors(doc, site);
	const struct gm_site_figures *record = &site->record;

	fprintf(file, "%s,%s,%s,", site->id, gm_level_name(record->level),
		gm_kind_name(record->kind));
	if (record->device >= 0)
		fprintf(file, "%d", record->device);
	fprintf(file, ",%s,%" PRIu64 ",%" PRIu64 ",", gm_verdict_name(site->verdict),
		record->live_bytes, record->live_count);
	write_bytes(file, record->peak_bytes);
	write_bytes(file, record->bytes_at_peak);
	fprintf(file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", record->allocated_bytes,
		record->allocations, record->frees);
	write_seconds(file, record->first_ns);
	write_seconds(file, record->last_ns);
	write_cell(file, site->library);
	fputc(',', file);
	write_cell(file, site->category);
	fputc(',', file);
	write_cell(file, site->phase);
	fputc(',', file);
	write_cell(file, gm_stack_label(doc, site->stack));
	write_run(file, doc);
	fputc(',', file);
	write_bytes(file, errors.live_bytes);
	write_bytes(file, errors.at_peak_bytes);
	write_number(file, errors.allocated_bytes);
	fputs("\r\n", file);
}

static void write_sites(FILE *file, struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->sites_count; i++)
		if (!doc->sites[i].hidden && doc->sites[i].record.allocations)
			write_site(file, doc, &doc->sites[i]);
}

int gm_export_csv(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	(void)options;
	write_head(file);
	write_sites(file, doc);
	return gm_export_end(file);
}

int gm_export_csv_job(struct gm_job *job, const struct gm_options *options, FILE *file)
{
	(void)options;
	write_head(file);
	for (unsigned i = 0; i < job->count; i++)
		write_sites(file, job->docs[i]);
	return gm_export_end(file);
}

/* ---- named ranges ---- */

static void write_signed(FILE *file, int64_t number, bool known)
{
	if (known)
		fprintf(file, "%" PRId64, number);
	fputc(',', file);
}

static void write_instance(FILE *file, const char *name, const struct gm_range_instance *instance,
			   bool measured)
{
	write_cell(file, measured ? name : NULL);
	fputc(',', file);
	write_seconds(file, measured ? instance->start_ns : GM_NO_BYTES);
	write_seconds(file, measured ? instance->end_ns : GM_NO_BYTES);
}

static void write_range(FILE *file, const struct gm_doc *doc, const struct gm_named_range *range)
{
	const struct gm_range_record *record = &range->record;
	bool measured = record->measured != 0;

	write_cell(file, range->path);
	fprintf(file, ",%s,", gm_range_source_name(record->source));
	if (record->device >= 0)
		fprintf(file, "%d", record->device);
	fprintf(file, ",%" PRIu64 ",", record->closed);
	write_bytes(file, measured ? record->lowest_peak_bytes : GM_NO_BYTES);
	write_bytes(file, range->median_peak_bytes);
	write_bytes(file, measured ? record->highest.peak_bytes : GM_NO_BYTES);
	write_instance(file, range->highest_name, &record->highest, measured);
	write_signed(file, record->retained_bytes, measured);
	write_signed(file, range->median_retained_bytes, measured);
	write_signed(file, record->most_retained.retained_bytes, measured);
	write_instance(file, range->most_retained_name, &record->most_retained, measured);
	write_number(file, range->work_bytes);
	write_run(file, doc);
	fputs("\r\n", file);
}

static void write_ranges(FILE *file, const struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->ranges_count; i++)
		if (!doc->ranges[i].hidden)
			write_range(file, doc, &doc->ranges[i]);
}

static void write_ranges_head(FILE *file)
{
	fprintf(file, "path,source,device,times,lowest_peak_bytes,median_peak_bytes,peak_bytes,"
		      "peak_name,peak_start_s,peak_end_s,retained_bytes,median_retained_bytes,"
		      "most_retained_bytes,most_retained_name,most_retained_start_s,"
		      "most_retained_end_s,live_bytes,program,revision,job,host,rank,pid,"
		      "started_at\r\n");
}

int gm_export_csv_ranges(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	(void)options;
	write_ranges_head(file);
	write_ranges(file, doc);
	return gm_export_end(file);
}

int gm_export_csv_ranges_job(struct gm_job *job, const struct gm_options *options, FILE *file)
{
	(void)options;
	write_ranges_head(file);
	for (unsigned i = 0; i < job->count; i++)
		write_ranges(file, job->docs[i]);
	return gm_export_end(file);
}
