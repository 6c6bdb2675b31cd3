/*
 * Several files: the whole and its findings, then a row per process; each job by itself.
 */
#include "report/render/text/text_job.h"
#include "report/render/text/text.h"
#include "report/render/text/text_summary.h"
#include "report/stacks/nccl.h"
#include "report/support/print.h"
#include <stdlib.h>
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
	bool nccl, growing, ooms;
};

static struct extra find_extra(const struct gm_job *job)
{
	struct extra extra = {0};

	for (unsigned i = 0; i < job->count; i++) {
		extra.nccl = extra.nccl || gm_nccl_bytes(job->docs[i], -1, true);
		extra.growing = extra.growing || growing(job->docs[i]);
		extra.ooms = extra.ooms || job->docs[i]->ooms_count || job->docs[i]->ooms_lost;
	}
	return extra;
}

static void begin_table(struct gm_table *table, struct extra extra)
{
	const char *titles[GM_COLUMNS + 1] = {"rank",	"pid",	"<host", "<end",
					      "device", "live", "peak"};
	unsigned count = 7;

	if (extra.nccl)
		titles[count++] = "NCCL";
	titles[count++] = "not freed";
	if (extra.growing)
		titles[count++] = "growing";
	if (extra.ooms)
		titles[count++] = "out of memory";
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
	if (extra.growing)
		gm_table_cell(table, "%u", growing(doc));
	if (extra.ooms)
		gm_table_count(table, doc->ooms_count + doc->ooms_lost);
}

static uint64_t peak_of(const struct gm_doc *doc)
{
	uint64_t peak = 0;

	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER && doc->levels[i].device >= 0 &&
		    doc->levels[i].peak_bytes > peak)
			peak = doc->levels[i].peak_bytes;
	return peak;
}

/* Ranks the state of a process: out of memory is worst, then killed, then growing. */
static unsigned badness(const struct gm_doc *doc)
{
	if (doc->superseded)
		return 0;
	return doc->ooms_count + doc->ooms_lost     ? 4
	       : strcmp(doc->end, "killed") == 0    ? 3
	       : growing(doc)			    ? 2
						    : 1;
}

static int compare_worst(const void *a, const void *b)
{
	struct gm_doc *x = *(struct gm_doc *const *)a, *y = *(struct gm_doc *const *)b;

	if (badness(x) != badness(y))
		return badness(x) < badness(y) ? 1 : -1;
	if (peak_of(x) != peak_of(y))
		return peak_of(x) < peak_of(y) ? 1 : -1;
	return gm_compare_ranks(x, y);
}

unsigned gm_text_order(struct gm_out *out, struct gm_job *job, struct gm_doc ***docs)
{
	*docs = gm_zone_alloc(&job->zone, job->count + 1, sizeof(**docs));
	memcpy(*docs, job->docs, job->count * sizeof(**docs));
	if (job->count <= out->top)
		return job->count;
	qsort(*docs, job->count, sizeof(**docs), compare_worst);
	return out->top;
}

static void add_rows(struct gm_table *table, struct gm_doc *doc, struct extra extra)
{
	unsigned rows = 0;

	for (unsigned k = 0; k < doc->levels_count; k++) {
		const struct gm_level_record *level = &doc->levels[k];

		if (level->level == GM_LEVEL_DRIVER && level->device >= 0) {
			add_row(table, doc, level, extra);
			rows++;
		}
	}
	if (!rows)
		add_row(table, doc, NULL, extra);
}

/* A row for each process and device; of many processes the worst. */
static void print_ranks(struct gm_out *out, struct gm_job *job)
{
	struct extra extra = find_extra(job);
	struct gm_doc **docs;
	unsigned shown = gm_text_order(out, job, &docs);
	struct gm_table table;

	if (shown < job->count)
		gm_heading(out, "Worst of %u processes", job->count);
	else
		gm_heading(out, "Processes");
	begin_table(&table, extra);
	table.whole = true; /* of the processes that are shown, all devices */
	for (unsigned i = 0; i < shown; i++)
		add_rows(&table, docs[i], extra);
	gm_table_end(out, &table);
	gm_print_more(out, "  ", job->count, "process");
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
	const char *titles[] = {"device",	"processes",   "live", "count",
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

static void print_job(struct gm_out *out, struct gm_job *job, const char *name)
{
	unsigned left_out = job->count - job->ranks;

	gm_print(out, GM_BOLD, "%s%u process%s", name, job->ranks, job->ranks == 1 ? "" : "es");
	if (left_out)
		gm_print(out, GM_BOLD, "; %u other file%s of earlier moments not counted", left_out,
			 left_out == 1 ? " is" : "s are");
	fputc('\n', out->file);
	print_totals(out, job);
	gm_text_findings(out, job->findings, job->findings_count);
	print_ranks(out, job);
}

void gm_text_job(struct gm_out *out, struct gm_job *job)
{
	if (!job->parts_count)
		print_job(out, job, job->ranks == job->count ? "All " : "");
	else
		gm_print(out, GM_BOLD, "%u jobs, %u processes\n", job->parts_count, job->count);
	for (unsigned i = 0; i < job->parts_count && i < out->top; i++) {
		struct gm_job *part = &job->parts[i];

		fputc('\n', out->file);
		print_job(out, part,
			  part->id ? gm_zone_printf(&part->zone, "Job %s: ", part->id)
				   : "Without a job id: ");
	}
	if (job->parts_count > out->top)
		fputc('\n', out->file);
	gm_print_more(out, "", job->parts_count, "job");
}
