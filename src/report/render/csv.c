/*
 * A line per site, by RFC 4180, for spreadsheets.
 */
#include "report/judge.h"
#include "report/render/export.h"
#include <inttypes.h>
#include <string.h>

static void write_cell(FILE *file, const char *text)
{
	if (!text)
		return;
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, file);
		return;
	}
	fputc('"', file);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', file);
		fputc(*text, file);
	}
	fputc('"', file);
}

int gm_export_csv(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	(void)options;
	fprintf(file, "id,level,kind,device,verdict,live_bytes,live_count,peak_bytes,bytes_at_peak,"
		      "allocated_bytes,allocations,frees,first_s,last_s,library,category,phase,"
		      "place\r\n");
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];
		const struct gm_site_record *record = &site->record;

		if (site->hidden || !record->allocations)
			continue;
		fprintf(file, "%s,%s,%s,", site->id, gm_level_name(record->level),
			gm_kind_name(record->kind));
		if (record->device >= 0)
			fprintf(file, "%d", record->device);
		fprintf(file,
			",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			",%" PRIu64 ",%.9f,%.9f,",
			gm_verdict_name(site->verdict), record->live_bytes, record->live_count,
			record->peak_bytes, record->bytes_at_peak, record->allocated_bytes,
			record->allocations, record->frees, (double)record->first_ns / 1e9,
			(double)record->last_ns / 1e9);
		write_cell(file, site->library);
		fputc(',', file);
		write_cell(file, site->category);
		fputc(',', file);
		write_cell(file, site->phase);
		fputc(',', file);
		write_cell(file, gm_place(doc, site->stack));
		fputs("\r\n", file);
	}
	return gm_export_end(file);
}
