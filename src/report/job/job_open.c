/*
 * Opening the files of a job, and summing their totals.
 */
#include "report/job/job_open.h"
#include "report/job/internal.h"
#include "report/judge/findings.h"
#include "report/open/open.h"
#include "report/support/progress.h"
#include "report/symbols/symbolize.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int compare_docs(const void *a, const void *b)
{
	return gm_compare_ranks(*(struct gm_doc *const *)a, *(struct gm_doc *const *)b);
}

static struct gm_job_total *find_total(struct gm_job *job, const struct gm_doc *doc, int device)
{
	struct gm_job_total *total;

	for (unsigned i = 0; i < job->totals_count; i++)
		if (gm_same_device(job->totals[i].first, job->totals[i].level.device, doc, device))
			return &job->totals[i];
	total = gm_zone_push(&job->zone, &job->totals, &job->totals_count, sizeof(*total));
	total->first = doc;
	total->level.device = (int16_t)device;
	return total;
}

static void sum_totals(struct gm_job *job)
{
	for (unsigned i = 0; i < job->count; i++) {
		const struct gm_doc *doc = job->docs[i];

		for (unsigned k = 0; k < doc->levels_count && !doc->superseded; k++) {
			const struct gm_level_record *level = &doc->levels[k];
			struct gm_job_total *sum;

			if (level->level != GM_LEVEL_DRIVER || level->device < 0)
				continue;
			sum = find_total(job, doc, level->device);
			sum->processes++;
			sum->level.current_bytes += level->current_bytes;
			sum->level.current_count += level->current_count;
			sum->level.peak_bytes += level->peak_bytes;
			sum->level.physical_bytes += level->physical_bytes;
			sum->level.physical_peak_bytes += level->physical_peak_bytes;
			sum->level.allocations += level->allocations;
		}
	}
}

/* Files whose records are kept stay open: a file and its history each. */
static void allow_open_files(unsigned count)
{
	rlim_t wanted = 2ul * count + 64;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void open_docs(struct gm_job *job, char **paths, unsigned count,
		      const struct gm_options *options, void (*complain)(const char *sentence))
{
	struct gm_options shared = *options;
	char error[1024];

	if (options->symbols)
		shared.shared_symbols = job->symbols =
			gm_symbols_new(&job->zone, options->symbol_cache);
	allow_open_files(count);
	for (unsigned i = 0; i < count; i++) {
		struct gm_doc *doc = gm_doc_open(paths[i], &shared, error, sizeof(error));

		if (count > 1)
			gm_progress("reading files", i, count);
		if (!doc) {
			complain(error);
			continue;
		}
		if (count > 1 && !options->keep_records)
			gm_reader_drop_records(doc->reader);
		job->docs[job->count++] = doc;
	}
}

static void judge(struct gm_job *job)
{
	gm_job_judge(job);
	gm_job_judge_shares(job);
	gm_job_gather(job);
}

static bool same_id(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool are_of_several_jobs(const struct gm_job *job)
{
	for (unsigned i = 1; i < job->count; i++)
		if (!same_id(job->docs[i]->job, job->docs[0]->job))
			return true;
	return false;
}

static struct gm_job *part_of(struct gm_job *job, const char *id)
{
	struct gm_job *part;

	for (unsigned i = 0; i < job->parts_count; i++)
		if (same_id(job->parts[i].id, id))
			return &job->parts[i];
	part = gm_zone_push(&job->zone, &job->parts, &job->parts_count, sizeof(*part));
	part->id = id;
	return part;
}

/* Most severe first, then the one with more bytes in its first finding. */
static int compare_parts(const void *a, const void *b)
{
	const struct gm_job *x = a, *y = b;

	if (!x->findings_count || !y->findings_count)
		return (int)!x->findings_count - (int)!y->findings_count;
	return gm_compare_findings(&x->findings[0], &y->findings[0]);
}

/* Each job by itself; the whole has the findings of all. */
static void judge_parts(struct gm_job *job)
{
	struct gm_finding *slot;

	for (unsigned i = 0; i < job->count; i++) {
		struct gm_job *part = part_of(job, job->docs[i]->job);

		*(struct gm_doc **)gm_zone_push(&part->zone, &part->docs, &part->count,
						sizeof(struct gm_doc *)) = job->docs[i];
		part->ranks += !job->docs[i]->superseded;
	}
	for (unsigned i = 0; i < job->parts_count; i++) {
		sum_totals(&job->parts[i]);
		judge(&job->parts[i]);
	}
	qsort(job->parts, job->parts_count, sizeof(*job->parts), compare_parts);
	for (unsigned i = 0; i < job->parts_count; i++) {
		for (unsigned k = 0; k < job->parts[i].freed_shares_count; k++)
			*(struct gm_freed_share *)gm_zone_push(
				&job->zone, &job->freed_shares, &job->freed_shares_count,
				sizeof(struct gm_freed_share)) = job->parts[i].freed_shares[k];
		for (unsigned k = 0; k < job->parts[i].findings_count; k++) {
			job->parts[i].findings[k].job = job->parts[i].id;
			slot = gm_zone_push(&job->zone, &job->findings, &job->findings_count,
					    sizeof(*slot));
			*slot = job->parts[i].findings[k];
		}
	}
	gm_sort_findings(job->findings, job->findings_count);
}

struct gm_job *gm_job_open(char **paths, unsigned count, const struct gm_options *options,
			   void (*complain)(const char *sentence))
{
	struct gm_job *job = gm_realloc(NULL, sizeof(*job));

	memset(job, 0, sizeof(*job));
	job->several = count > 1;
	job->docs = gm_zone_alloc(&job->zone, count, sizeof(struct gm_doc *));
	open_docs(job, paths, count, options, complain);
	if (!job->count) {
		gm_job_close(job);
		return NULL;
	}
	qsort(job->docs, job->count, sizeof(struct gm_doc *), compare_docs);
	job->ranks = gm_find_superseded(job->docs, job->count);
	sum_totals(job);
	if (are_of_several_jobs(job))
		judge_parts(job);
	else if (job->count > 1)
		judge(job);
	if (!job->parts_count)
		job->id = job->docs[0]->job;
	return job;
}

void gm_job_close(struct gm_job *job)
{
	if (!job)
		return;
	for (unsigned i = 0; i < job->count; i++)
		gm_doc_close(job->docs[i]);
	for (unsigned i = 0; i < job->parts_count; i++)
		gm_zone_free(&job->parts[i].zone);
	gm_symbols_free(job->symbols);
	gm_zone_free(&job->zone);
	free(job);
}
