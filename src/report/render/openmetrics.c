/*
 * OpenMetrics text for node_exporter's textfile collector. Names follow the Prometheus conventions:
 * base units, `_total` for counters; one family after the other, ended by "# EOF".
 */
#include "report/render/export.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static void label(FILE *file, const char *name, const char *value, bool first)
{
	fprintf(file, "%s%s=\"", first ? "" : ",", name);
	for (; value && *value; value++)
		if (*value == '\n')
			fputs("\\n", file);
		else if (*value == '"' || *value == '\\')
			fprintf(file, "\\%c", *value);
		else
			fputc(*value, file);
	fputc('"', file);
}

static void device_label(FILE *file, int device)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", device);
	label(file, "device", device < 0 ? "host" : text, false);
}

/* The labels that every sample has: which process it is of. */
static void begin(FILE *file, const struct gm_doc *doc, const char *name)
{
	char text[16];

	fprintf(file, "%s{", name);
	label(file, "program", doc->program ? doc->program : "unknown", true);
	if (doc->header->rank >= 0) {
		snprintf(text, sizeof(text), "%d", doc->header->rank);
		label(file, "rank", text, false);
	}
}

static void family(FILE *file, const char *name, const char *type, const char *help)
{
	fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
	if (strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_bytes") == 0)
		fprintf(file, "# UNIT %s bytes\n", name);
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

static void write_usage(FILE *file, const struct gm_doc *doc)
{
	for (size_t u = 0; u < sizeof(usages) / sizeof(usages[0]); u++) {
		char name[64];

		family(file, usages[u].name, usages[u].type, usages[u].help);
		snprintf(name, sizeof(name), "%s%s", usages[u].name,
			 strcmp(usages[u].type, "counter") == 0 ? "_total" : "");
		for (unsigned i = 0; i < doc->usage_count; i++) {
			uint64_t value;

			memcpy(&value, (const char *)&doc->usage[i] + usages[u].offset,
			       sizeof(value));
			begin(file, doc, name);
			device_label(file, doc->usage[i].device);
			label(file, "kind", gm_kind_name(doc->usage[i].kind), false);
			fprintf(file, "} %" PRIu64 "\n", value);
		}
	}
}

static void write_verdicts(FILE *file, const struct gm_doc *doc)
{
	uint64_t bytes[4] = {0};

	for (unsigned i = 0; i < doc->sites_count; i++)
		if (!doc->sites[i].hidden && doc->sites[i].record.level == GM_LEVEL_DRIVER)
			bytes[doc->sites[i].verdict] += doc->sites[i].record.live_bytes;
	family(file, "gpumemtrace_live_bytes", "gauge", "Live memory by verdict of its site.");
	for (unsigned v = GM_CACHED; v <= GM_GROW; v++) {
		begin(file, doc, "gpumemtrace_live_bytes");
		label(file, "verdict", gm_verdict_name(v), false);
		fprintf(file, "} %" PRIu64 "\n", bytes[v]);
	}
}

int gm_export_openmetrics(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	(void)options;
	write_usage(file, doc);
	write_verdicts(file, doc);
	if (doc->exit_bytes != GM_NO_BYTES) {
		family(file, "gpumemtrace_exit_leak_bytes", "gauge",
		       "Owned memory not freed at the end.");
		begin(file, doc, "gpumemtrace_exit_leak_bytes");
		fprintf(file, "} %" PRIu64 "\n", doc->exit_bytes);
	}
	family(file, "gpumemtrace_ooms", "counter", "Out-of-memory events.");
	begin(file, doc, "gpumemtrace_ooms_total");
	fprintf(file, "} %" PRIu64 "\n",
		doc->header->oom_events > doc->ooms_count ? doc->header->oom_events
							  : doc->ooms_count);
	if (!isnan(doc->duration_s)) {
		fprintf(file,
			"# HELP gpumemtrace_duration_seconds Time since the first CUDA event.\n"
			"# TYPE gpumemtrace_duration_seconds gauge\n"
			"# UNIT gpumemtrace_duration_seconds seconds\n");
		begin(file, doc, "gpumemtrace_duration_seconds");
		fprintf(file, "} %.9f\n", doc->duration_s);
	}
	fputs("# EOF\n", file);
	return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}
