/*
 * The table of export formats.
 */
#include "report/render/export/export.h"
#include "report/doc/options.h"
#include "report/render/export/internal.h"
#include "report/render/json/json.h"
#include <string.h>

static int write_json(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	(void)options;
	return gm_json_write_doc(doc, NULL, NULL, file);
}

static int write_json_job(struct gm_job *job, const struct gm_options *options, FILE *file)
{
	(void)options;
	return gm_json_write_job(job, NULL, NULL, file);
}

static int write_jsonl(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	(void)options;
	return gm_json_write_line(doc, file);
}

static int write_jsonl_job(struct gm_job *job, const struct gm_options *options, FILE *file)
{
	int rc = 0;

	for (unsigned i = 0; i < job->count && !rc; i++)
		rc = write_jsonl(job->docs[i], options, file);
	return rc;
}

const struct gm_export_format gm_export_formats[] = {
	{"json", "the document of --json", write_json, NULL, write_json_job, false, false},
	{"jsonl", "the document of each file as a line, to be appended (docs/fleet.md)",
	 write_jsonl, NULL, write_jsonl_job, false, false},
	{"collapsed", "stacks for flamegraph.pl and speedscope", gm_export_collapsed, NULL,
	 gm_export_collapsed_job, false, false},
	{"perfetto",
	 "trace for ui.perfetto.dev: levels over time, phases, marks; ranks on one axis",
	 gm_export_perfetto, NULL, gm_export_perfetto_job, false, false},
	{"pprof", "profile for pprof: live, peak and total memory by stack; ranks are labels",
	 gm_export_pprof, NULL, gm_export_pprof_job, true, false},
	{"torch-snapshot",
	 "pickle for pytorch.org/memory_viz and torch.cuda._memory_viz; one per rank",
	 gm_export_torch_snapshot, NULL, NULL, true, false, "a snapshot"},
	{"sqlite", "tables for SQL, added to those of other runs in OUT (docs/sql.md)", NULL,
	 gm_export_sqlite, NULL, true, true},
	{"zst",
	 "the file and its complete history in one, compressed; read like a file; one per rank",
	 NULL, gm_export_zst, NULL, true, false},
	{"csv", "a line per site", gm_export_csv, NULL, gm_export_csv_job, false, false},
	{"csv-ranges", "a line per named range (NVTX, steps of PyTorch)", gm_export_csv_ranges,
	 NULL, gm_export_csv_ranges_job, false, false},
	{"openmetrics", "metrics as OpenMetrics text", gm_export_openmetrics, NULL,
	 gm_export_openmetrics_job, false, false},
	{"prometheus", "metrics as Prometheus text, for node_exporter's textfile collector",
	 gm_export_prometheus, NULL, gm_export_prometheus_job, false, false},
};

const unsigned gm_export_formats_count = sizeof(gm_export_formats) / sizeof(gm_export_formats[0]);

const struct gm_export_format *gm_export_find(const char *name)
{
	for (unsigned i = 0; i < gm_export_formats_count; i++)
		if (strcmp(gm_export_formats[i].name, name) == 0)
			return &gm_export_formats[i];
	return NULL;
}
