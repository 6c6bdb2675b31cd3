/*
 * Several files: a row per process, then the whole.
 */
#include "report/render/text/text_job.h"
#include "report/render/text/text.h"
#include "report/render/text/text_summary.h"
#include "report/stacks/nccl.h"
#include "report/support/print.h"
#include <string.h>

static unsigned growing(const struct gm_doc *doc)
{
	unsigned count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++)
		count += doc->sites[i].verdict == GM_GROW && !doc->sites[i].hidden;
	return count;
}

/* Columns that are there only if a process has something to put in them. */
struct extra {
	bool jobs, nccl;
};

static struct extra find_extra(const struct gm_job *job)
{
	struct extra extra = {0};

	for (unsigned i = 0; i < job->count; i++) {
		const char *first = job->docs[0]->job, *name = job->docs[i]->job;

		extra.jobs = extra.jobs || !first != !name || (name && strcmp(first, name) != 0);
		extra.nccl = extra.nccl || gm_nccl_bytes(job->docs[i], -1, true);
	}
	return extra;
}

static void begin_table(struct gm_table *table, struct extra extra)
{
	const char *titles[GM_COLUMNS + 1] = {"rank"};
	static const char *const rest[] = {"pid",	"<host",   "<end",
					   "device",	"current", "peak",
					   "not freed", "growing", "out of memory"};
	unsigned count = 1;

	if (extra.jobs)
		titles[count++] = "<job";
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		titles[count++] = rest[i];
		if (extra.nccl && strcmp(rest[i], "peak") == 0)
			titles[count++] = "NCCL";
	}
	gm_table_begin(table, titles);
}

/* A row for one device of a process, or for a process without any. */
static void add_row(struct gm_table *table, struct gm_doc *doc, const struct gm_level_record *level,
		    struct extra extra)
{
	if (doc->header->rank >= 0)
		gm_table_cell(table, "%d", doc->header->rank);
	else
		gm_table_cell(table, "-");
	if (extra.jobs)
		gm_table_cell(table, "%s", doc->job ? doc->job : "");
	gm_table_cell(table, "%u", doc->header->pid);
	gm_table_cell(table, "%s", doc->host ? doc->host : "");
	gm_table_cell(table, "%s%s%s", doc->end, doc->superseded ? ", " : "",
		      doc->superseded ? doc->superseded : "");
	if (level)
		gm_table_cell(table, "%d", level->device);
	else
		gm_table_cell(table, "-");
	gm_table_size(table, level ? level->current_bytes : GM_NO_BYTES);
	gm_table_size(table, level ? level->peak_bytes : GM_NO_BYTES);
	if (extra.nccl)
		gm_table_size(table, level ? gm_nccl_bytes(doc, level->device, true) : GM_NO_BYTES);
	gm_table_size(table, doc->exit_bytes);
	gm_table_cell(table, "%u", growing(doc));
	gm_table_count(table, doc->ooms_count + doc->ooms_lost);
}

void gm_text_ranks(struct gm_out *out, struct gm_job *job)
{
	struct extra extra = find_extra(job);
	struct gm_table table;

	begin_table(&table, extra);
	for (unsigned i = 0; i < job->count; i++) {
		struct gm_doc *doc = job->docs[i];
		unsigned rows = 0;

		for (unsigned k = 0; k < doc->levels_count; k++) {
			const struct gm_level_record *level = &doc->levels[k];

			if (level->level == GM_LEVEL_DRIVER && level->device >= 0) {
				add_row(&table, doc, level, extra);
				rows++;
			}
		}
		if (!rows)
			add_row(&table, doc, NULL, extra);
	}
	gm_table_end(out, &table);
}

static bool on_several_hosts(const struct gm_job *job)
{
	for (unsigned i = 1; i < job->totals_count; i++) {
		const char *a = job->totals[0].first->host, *b = job->totals[i].first->host;

		if (!a != !b || (a && strcmp(a, b) != 0))
			return true;
	}
	return false;
}

/* A row for each device of the job; of many the fullest, as many as --top says. */
static void print_totals(struct gm_out *out, struct gm_job *job)
{
	const char *titles[] = {"device",	"processes",   "current", "live",
				"sum of peaks", "allocations", NULL,	  NULL};
	bool hosts = on_several_hosts(job);
	struct gm_table table;

	if (hosts)
		titles[6] = "<host";
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < job->totals_count && i < out->top; i++) {
		const struct gm_job_total *total = &job->totals[i];

		gm_table_cell(&table, "%d", total->level.device);
		gm_table_cell(&table, "%u", total->processes);
		gm_table_size(&table, total->level.current_bytes);
		gm_table_count(&table, total->level.current_count);
		gm_table_size(&table, total->level.peak_bytes);
		gm_table_count(&table, total->level.allocations);
		if (hosts)
			gm_table_cell(&table, "%s", total->first->host ? total->first->host : "");
	}
	gm_table_end(out, &table);
	if (job->totals_count > out->top)
		gm_printf(out->file, "  %u more device%s (--top)\n", job->totals_count - out->top,
			job->totals_count - out->top == 1 ? "" : "s");
}

void gm_text_job(struct gm_out *out, struct gm_job *job)
{
	if (job->ranks == job->count)
		gm_heading(out, "All %u processes", job->count);
	else
		gm_heading(out, "%u processes, without %u earlier attempts and snapshots",
			   job->ranks, job->count - job->ranks);
	print_totals(out, job);
	gm_text_findings(out, job->findings, job->findings_count);
}
