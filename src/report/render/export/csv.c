/*
 * A line per site, by RFC 4180, for spreadsheets and for engines that read CSV (docs/fleet.md).
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
		      "place,program,revision,job,host,rank,pid,started_at\r\n");
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
static void write_bytes(FILE *file, uint64_t bytes)
{
	if (bytes != GM_NO_BYTES)
		fprintf(file, "%" PRIu64, bytes);
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
	const struct gm_site_record *record = &site->record;

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
