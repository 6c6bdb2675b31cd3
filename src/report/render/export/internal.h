/*
 * The formats, as rows of the table in export.c, and what several of them share (common.c).
 */
#ifndef GM_REPORT_RENDER_EXPORT_INTERNAL_H
#define GM_REPORT_RENDER_EXPORT_INTERNAL_H

#include "report/doc/options.h"
#include "report/job/job.h"
#include <stdio.h>

/* "outermost;...;innermost BYTES" lines of one level, for flame graphs. */
int gm_export_collapsed(struct gm_doc *doc, const struct gm_options *options, FILE *file);
int gm_export_collapsed_job(struct gm_job *job, const struct gm_options *options, FILE *file);

/* A line per site, by RFC 4180. */
int gm_export_csv(struct gm_doc *doc, const struct gm_options *options, FILE *file);
int gm_export_csv_job(struct gm_job *job, const struct gm_options *options, FILE *file);

/* A line per named range, with the same columns as the table `ranges` of docs/sql.md. */
int gm_export_csv_ranges(struct gm_doc *doc, const struct gm_options *options, FILE *file);
int gm_export_csv_ranges_job(struct gm_job *job, const struct gm_options *options, FILE *file);

/* Gauges and counters for a Prometheus textfile collector. */
int gm_export_openmetrics(struct gm_doc *doc, const struct gm_options *options, FILE *file);
int gm_export_openmetrics_job(struct gm_job *job, const struct gm_options *options, FILE *file);
int gm_export_prometheus(struct gm_doc *doc, const struct gm_options *options, FILE *file);
int gm_export_prometheus_job(struct gm_job *job, const struct gm_options *options, FILE *file);

/* Trace events in JSON: counters of each level, slices of phases and between marks. */
int gm_export_perfetto(struct gm_doc *doc, const struct gm_options *options, FILE *file);
int gm_export_perfetto_job(struct gm_job *job, const struct gm_options *options, FILE *file);

/* profile.proto of one level, compressed by gzip. */
int gm_export_pprof(struct gm_doc *doc, const struct gm_options *options, FILE *file);
int gm_export_pprof_job(struct gm_job *job, const struct gm_options *options, FILE *file);

/*
 * Writes the format of torch.cuda.memory._dump_snapshot: segments, blocks and the history of both.
 */
int gm_export_torch_snapshot(struct gm_doc *doc, const struct gm_options *options, FILE *file);

/* Tables of docs/sql.md; a run that is there already is replaced. */
int gm_export_sqlite(struct gm_doc *doc, const struct gm_options *options, const char *path,
		     char *error, size_t error_bytes);

/* Writes, as gm_export_format.write_path, the zstd form of the file and its complete history. */
int gm_export_zst(struct gm_doc *doc, const struct gm_options *options, const char *path,
		  char *error, size_t error_bytes);

/* When the first process of a job that counts began, in nanoseconds since 1970; 0: no file says. */
uint64_t gm_export_job_start(const struct gm_job *job);

/* Flushes the file; 0 or -EIO. */
int gm_export_end(FILE *file);

/* The level of formats that hold one, or the same bytes would be counted twice: --level or driver.
 */
unsigned gm_export_level(const struct gm_options *options);

/* A frame's function, or "module+0x12" in `text`; its source file, or module, or "". */
const char *gm_export_frame_name(const struct gm_frame *frame, char *text, size_t bytes);
const char *gm_export_frame_file(const struct gm_frame *frame);

#endif
