/*
 * The table of export formats, and what several of them share.
 */
#include "report/render/export/export.h"
#include "report/doc/options.h"
#include "report/journal/archive.h"
#include "report/render/json/json.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

const struct gm_export_format gm_export_formats[] = {
	{"json", "the document of --json", gm_export_json, NULL, gm_export_json_job, false},
	{"jsonl", "the document of each file as a line, to be appended (docs/fleet.md)",
	 gm_export_jsonl, NULL, gm_export_jsonl_job, false},
	{"collapsed", "stacks for flamegraph.pl and speedscope", gm_export_collapsed, NULL,
	 gm_export_collapsed_job, false},
	{"perfetto", "trace for ui.perfetto.dev: levels over time, phases, marks; ranks on one axis",
	 gm_export_perfetto, NULL, gm_export_perfetto_job, false},
	{"pprof", "profile for pprof: live, peak and total memory by stack; ranks are labels", gm_export_pprof, NULL,
	 gm_export_pprof_job, false},
	{"torch-snapshot", "pickle for pytorch.org/memory_viz and torch.cuda._memory_viz; one per rank",
	 gm_export_torch_snapshot, NULL, NULL, false},
	{"sqlite", "tables for SQL, added to those of other runs in OUT (docs/sql.md)", NULL,
	 gm_export_sqlite, NULL, true},
	{"zst", "the file and its complete history in one, compressed; read like a file; one per rank", NULL,
	 gm_export_zst, NULL, false},
	{"csv", "a line per site", gm_export_csv, NULL, gm_export_csv_job, false},
	{"openmetrics", "metrics for Prometheus' textfile collector", gm_export_openmetrics, NULL,
	 gm_export_openmetrics_job, false},
};

const unsigned gm_export_formats_count = sizeof(gm_export_formats) / sizeof(gm_export_formats[0]);

const struct gm_export_format *gm_export_find(const char *name)
{
	for (unsigned i = 0; i < gm_export_formats_count; i++)
		if (strcmp(gm_export_formats[i].name, name) == 0)
			return &gm_export_formats[i];
	return NULL;
}

int gm_export_end(FILE *file)
{
	return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}

uint64_t gm_export_job_start(const struct gm_job *job)
{
	uint64_t first = 0;

	for (unsigned i = 0; i < job->count; i++) {
		uint64_t start = job->docs[i]->header->started_realtime_ns;

		if (!job->docs[i]->superseded && start && (!first || start < first))
			first = start;
	}
	return first;
}

int gm_export_json(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	(void)options;
	return gm_json_write_doc(doc, NULL, NULL, file);
}

int gm_export_json_job(struct gm_job *job, const struct gm_options *options, FILE *file)
{
	(void)options;
	return gm_json_write_job(job, NULL, NULL, file);
}

int gm_export_jsonl(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	(void)options;
	return gm_json_write_line(doc, file);
}

int gm_export_jsonl_job(struct gm_job *job, const struct gm_options *options, FILE *file)
{
	int rc = 0;

	for (unsigned i = 0; i < job->count && !rc; i++)
		rc = gm_export_jsonl(job->docs[i], options, file);
	return rc;
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

unsigned gm_export_level(const struct gm_options *options)
{
	return options->level < 0 ? GM_LEVEL_DRIVER : (unsigned)options->level;
}

const char *gm_export_frame_name(const struct gm_frame *frame, char *text, size_t bytes)
{
	const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;

	if (frame->function)
		return frame->function;
	snprintf(text, bytes, "%s+0x%" PRIx64,
		 slash		 ? slash + 1
		 : frame->module ? frame->module
				 : "unknown",
		 frame->offset);
	return text;
}

const char *gm_export_frame_file(const struct gm_frame *frame)
{
	return frame->file ? frame->file : frame->module ? frame->module : "";
}
