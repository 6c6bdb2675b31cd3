/*
 * Metrics as text, in two formats: OpenMetrics, ended by "# EOF", and Prometheus' own (0.0.4),
 * which node_exporter's textfile collector reads: it knows no units, and a counter's family has the
 * name of its samples. Names follow the Prometheus conventions: base units, `_total` for counters.
 */
#include "report/doc/enum_names.h"
#include "report/doc/options.h"
#include "report/render/export/internal.h"
#include "report/support/print.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void label(FILE *file, const char *name, const char *value, bool first)
{
	char *harmless = gm_harmless(value ? value : "");

	fprintf(file, "%s%s=\"", first ? "" : ",", name);
	for (const char *at = harmless; *at; at++)
		if (*at == '"' || *at == '\\')
			fprintf(file, "\\%c", *at);
		else
			fputc(*at, file);
	fputc('"', file);
	free(harmless);
}

static void device_label(FILE *file, int device)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", device);
	label(file, "device", device < 0 ? "host" : text, false);
}

/* The processes of one exposition, and which labels tell them apart. */
struct processes {
	struct gm_doc *const *docs;
	unsigned count;
	bool prometheus; /* in its own format */
};

/* The labels that every sample has: which process it is of. Several need more than their ranks. */
static void begin(FILE *file, const struct processes *all, const struct gm_doc *doc,
		  const char *name)
{
	char text[16];

	fprintf(file, "%s{", name);
	label(file, "program", doc->program ? doc->program : "unknown", true);
	if (doc->job)
		label(file, "job", doc->job, false);
	if (doc->header->rank >= 0) {
		snprintf(text, sizeof(text), "%d", doc->header->rank);
		label(file, "rank", text, false);
	}
	if (all->count < 2)
		return;
	label(file, "host", doc->host ? doc->host : "unknown", false);
	snprintf(text, sizeof(text), "%u", doc->header->pid);
	label(file, "pid", text, false);
}

static bool ends_with(const char *text, const char *tail)
{
	size_t a = strlen(text), b = strlen(tail);

	return a > b && strcmp(text + a - b, tail) == 0;
}

static void family(FILE *file, const struct processes *all, const char *name, const char *type,
		   const char *help)
{
	const char *total = all->prometheus && strcmp(type, "counter") == 0 ? "_total" : "";

	fprintf(file, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, total, help, name, total, type);
	if (!all->prometheus && ends_with(name, "_bytes"))
		fprintf(file, "# UNIT %s bytes\n", name);
	if (!all->prometheus && ends_with(name, "_seconds"))
		fprintf(file, "# UNIT %s seconds\n", name);
}

/* A family over the usage table: the member at `offset` of each row. */
static const struct {
	const char *name, *type, *help;
	size_t offset;
} usages[] = {
	{"gpumemtrace_allocated_bytes", "gauge", "Memory that is allocated.",
	 offsetof(struct gm_usage_record, current_bytes)},
	{"gpumemtrace_allocations", "gauge", "Allocations that are live.",
	 offsetof(struct gm_usage_record, current_count)},
	{"gpumemtrace_peak_bytes", "gauge", "Highest allocated memory.",
	 offsetof(struct gm_usage_record, peak_bytes)},
	{"gpumemtrace_allocation_calls", "counter", "Allocation calls that succeeded.",
	 offsetof(struct gm_usage_record, allocations)},
	{"gpumemtrace_free_calls", "counter", "Frees that succeeded.",
	 offsetof(struct gm_usage_record, frees)},
	{"gpumemtrace_allocation_failures", "counter", "Allocation calls that failed.",
	 offsetof(struct gm_usage_record, failures)},
};

static void write_usage_row(FILE *file, const struct processes *all, const struct gm_doc *doc,
			    size_t family_number, const struct gm_usage_record *usage)
{
	bool counter = strcmp(usages[family_number].type, "counter") == 0;
	char name[64];
	uint64_t value;

	snprintf(name, sizeof(name), "%s%s", usages[family_number].name, counter ? "_total" : "");
	memcpy(&value, (const char *)usage + usages[family_number].offset, sizeof(value));
	begin(file, all, doc, name);
	device_label(file, usage->device);
	label(file, "kind", gm_kind_name(usage->kind), false);
	fprintf(file, "} %" PRIu64 "\n", value);
}

static void write_usage(FILE *file, const struct processes *all)
{
	for (size_t u = 0; u < sizeof(usages) / sizeof(usages[0]); u++) {
		family(file, all, usages[u].name, usages[u].type, usages[u].help);
		for (unsigned d = 0; d < all->count; d++)
			for (unsigned i = 0; i < all->docs[d]->usage_count; i++)
				write_usage_row(file, all, all->docs[d], u,
						&all->docs[d]->usage[i]);
	}
}

static void write_by_verdict(FILE *file, const struct processes *all, const struct gm_doc *doc,
			     const char *name, const double bytes[4])
{
	for (unsigned v = GM_CACHED; v <= GM_GROW; v++) {
		begin(file, all, doc, name);
		label(file, "verdict", gm_verdict_name(v), false);
		fprintf(file, "} %.0f\n", bytes[v]);
	}
}

static void write_verdicts(FILE *file, const struct processes *all)
{
	family(file, all, "gpumemtrace_live_bytes", "gauge", "Live memory by verdict of its site.");
	for (unsigned d = 0; d < all->count; d++) {
		const struct gm_doc *doc = all->docs[d];
		double bytes[4] = {0};

		for (unsigned i = 0; i < doc->sites_count; i++)
			if (!doc->sites[i].hidden && doc->sites[i].record.level == GM_LEVEL_DRIVER)
				bytes[doc->sites[i].verdict] +=
					(double)doc->sites[i].record.live_bytes;
		write_by_verdict(file, all, doc, "gpumemtrace_live_bytes", bytes);
	}
}

/* Of sampled recordings. Sites are sampled independently, so their variances add up. */
static void write_errors(FILE *file, const struct processes *all)
{
	bool begun = false;

	for (unsigned d = 0; d < all->count; d++) {
		const struct gm_doc *doc = all->docs[d];
		double squares[4] = {0};

		if (!doc->header->sample_bytes)
			continue;
		if (!begun)
			family(file, all, "gpumemtrace_live_error_bytes", "gauge",
			       "Standard error of gpumemtrace_live_bytes, which is an estimate.");
		begun = true;
		for (unsigned i = 0; i < doc->sites_count; i++) {
			const struct gm_site *site = &doc->sites[i];
			double error = (double)gm_site_error(doc, site, site->record.live_bytes);

			if (!site->hidden && site->record.level == GM_LEVEL_DRIVER)
				squares[site->verdict] += error * error;
		}
		for (unsigned v = GM_CACHED; v <= GM_GROW; v++)
			squares[v] = sqrt(squares[v]);
		write_by_verdict(file, all, doc, "gpumemtrace_live_error_bytes", squares);
	}
}

static void write_leaks(FILE *file, const struct processes *all)
{
	bool begun = false;

	for (unsigned d = 0; d < all->count; d++) {
		if (all->docs[d]->exit_bytes == GM_NO_BYTES)
			continue;
		if (!begun)
			family(file, all, "gpumemtrace_exit_leak_bytes", "gauge",
			       "Owned memory not freed at the end.");
		begun = true;
		begin(file, all, all->docs[d], "gpumemtrace_exit_leak_bytes");
		fprintf(file, "} %" PRIu64 "\n", all->docs[d]->exit_bytes);
	}
}

static void write_ooms(FILE *file, const struct processes *all)
{
	family(file, all, "gpumemtrace_ooms", "counter", "Out-of-memory events.");
	for (unsigned d = 0; d < all->count; d++) {
		const struct gm_doc *doc = all->docs[d];

		begin(file, all, doc, "gpumemtrace_ooms_total");
		fprintf(file, "} %" PRIu64 "\n", doc->ooms_count + doc->ooms_lost);
	}
}

static void write_durations(FILE *file, const struct processes *all)
{
	bool begun = false;

	for (unsigned d = 0; d < all->count; d++) {
		if (isnan(all->docs[d]->duration_s))
			continue;
		if (!begun)
			family(file, all, "gpumemtrace_duration_seconds", "gauge",
			       "Time since the first CUDA event.");
		begun = true;
		begin(file, all, all->docs[d], "gpumemtrace_duration_seconds");
		fprintf(file, "} %.9f\n", all->docs[d]->duration_s);
	}
}

static int write_all(FILE *file, const struct processes *all)
{
	write_usage(file, all);
	write_verdicts(file, all);
	write_errors(file, all);
	write_leaks(file, all);
	write_ooms(file, all);
	write_durations(file, all);
	if (!all->prometheus)
		fputs("# EOF\n", file);
	return gm_export_end(file);
}

static int write_doc(struct gm_doc *doc, bool prometheus, FILE *file)
{
	struct processes one = {&doc, 1, prometheus};

	return write_all(file, &one);
}

static int write_job(struct gm_job *job, bool prometheus, FILE *file)
{
	struct gm_doc **docs = gm_zone_alloc(&job->zone, job->count, sizeof(struct gm_doc *));
	struct processes all = {docs, 0, prometheus};

	for (unsigned i = 0; i < job->count; i++)
		if (!job->docs[i]->superseded)
			docs[all.count++] = job->docs[i];
	return write_all(file, &all);
}

int gm_export_openmetrics(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	(void)options;
	return write_doc(doc, false, file);
}

int gm_export_openmetrics_job(struct gm_job *job, const struct gm_options *options, FILE *file)
{
	(void)options;
	return write_job(job, false, file);
}

int gm_export_prometheus(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	(void)options;
	return write_doc(doc, true, file);
}

int gm_export_prometheus_job(struct gm_job *job, const struct gm_options *options, FILE *file)
{
	(void)options;
	return write_job(job, true, file);
}
