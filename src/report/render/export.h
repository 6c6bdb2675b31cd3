/*
 * Other formats than JSON: one function each, and the table that `export --format` goes by.
 */
#ifndef GM_REPORT_RENDER_EXPORT_H
#define GM_REPORT_RENDER_EXPORT_H

#include "report/doc.h"
#include <stdio.h>

struct gm_export_format {
	const char *name, *help;
	int (*write)(struct gm_doc *doc, const struct gm_options *options, FILE *file);
};

extern const struct gm_export_format gm_export_formats[];
extern const unsigned gm_export_formats_count;

int gm_export_json(struct gm_doc *doc, const struct gm_options *options, FILE *file);

/* "outermost;...;innermost BYTES" lines of one level, for flame graphs. */
int gm_export_collapsed(struct gm_doc *doc, const struct gm_options *options, FILE *file);

/* A line per site, by RFC 4180. */
int gm_export_csv(struct gm_doc *doc, const struct gm_options *options, FILE *file);

/* Gauges and counters for a Prometheus textfile collector. */
int gm_export_openmetrics(struct gm_doc *doc, const struct gm_options *options, FILE *file);

/* The figure of a site that --sort or --at peak names; live bytes if neither is given. */
uint64_t gm_site_value(const struct gm_site *site, const struct gm_options *options);

#endif
