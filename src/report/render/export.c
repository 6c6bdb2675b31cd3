/*
 * The table of export formats, and the two that are no more than a loop over sites.
 */
#include "report/render/export.h"
#include "report/render/json.h"
#include "report/judge.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

const struct gm_export_format gm_export_formats[] = {
	{"json", "the document of --json", gm_export_json},
	{"collapsed", "stacks for flamegraph.pl and speedscope", gm_export_collapsed},
	{"csv", "a line per site", gm_export_csv},
	{"openmetrics", "metrics for Prometheus' textfile collector", gm_export_openmetrics},
};

const unsigned gm_export_formats_count = sizeof(gm_export_formats) / sizeof(gm_export_formats[0]);

static int finish(FILE *file)
{
	return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}

int gm_export_json(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	(void)options;
	return gm_json_write(gm_json_doc(doc), file);
}

uint64_t gm_site_value(const struct gm_site *site, const struct gm_options *options)
{
	const struct gm_site_record *record = &site->record;
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

/* ';' separates frames and a newline ends a line: neither can be in a name. */
static void write_name(FILE *file, const struct gm_frame *frame)
{
	const char *module = frame->module ? strrchr(frame->module, '/') : NULL;

	if (!frame->function) {
		fprintf(file, "%s+0x%" PRIx64,
			module		? module + 1
			: frame->module ? frame->module
					: "unknown",
			frame->offset);
		return;
	}
	for (const char *at = frame->function; *at; at++)
		fputc(*at == ';' || *at == '\n' ? ',' : *at, file);
	if (frame->python && frame->file) {
		const char *slash = strrchr(frame->file, '/');

		fprintf(file, " (%s:%u)", slash ? slash + 1 : frame->file, frame->line);
	}
}

int gm_export_collapsed(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];
		unsigned count = site->stack ? site->stack->count : 0;

		/* One level, or the same bytes would be counted twice. */
		if (site->hidden || !gm_site_value(site, options) ||
		    (options->level < 0 && site->record.level != GM_LEVEL_DRIVER))
			continue;
		if (!count)
			fputs(site->function ? site->function : "unknown", file);
		for (unsigned k = count; k-- > 0;) {
			write_name(file, &site->stack->frames[k]);
			if (k)
				fputc(';', file);
		}
		fprintf(file, " %" PRIu64 "\n", gm_site_value(site, options));
	}
	return finish(file);
}

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
	return finish(file);
}
