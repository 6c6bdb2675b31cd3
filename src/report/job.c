/*
 * Opening the files of a job, summing their totals and comparing their ranks.
 */
#include "report/job.h"
#include "report/format.h"
#include <stdlib.h>
#include <string.h>

#define IMBALANCE_PERCENT 20
#define IMBALANCE_BYTES	  (256ull << 20)

static int compare_docs(const void *a, const void *b)
{
	const struct gm_doc *x = *(struct gm_doc *const *)a, *y = *(struct gm_doc *const *)b;

	if (x->header->rank != y->header->rank)
		return x->header->rank < y->header->rank ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* Devices are told apart by their uuid and host; the same device of two processes is one row. */
static bool same_device(const struct gm_doc *a, const struct gm_doc *b, int device)
{
	const struct gm_device *x = gm_doc_device(a, device), *y = gm_doc_device(b, device);

	if (a->host && b->host && strcmp(a->host, b->host) != 0)
		return false;
	return !x || !y || !x->uuid || !y->uuid || strcmp(x->uuid, y->uuid) == 0;
}

static void sum_totals(struct gm_job *job)
{
	const struct gm_doc **owner = gm_realloc(NULL, sizeof(*owner));

	for (unsigned i = 0; i < job->count; i++) {
		const struct gm_doc *doc = job->docs[i];

		for (unsigned k = 0; k < doc->levels_count; k++) {
			const struct gm_level_record *level = &doc->levels[k];
			struct gm_level_record *sum = NULL;

			if (level->level != GM_LEVEL_DRIVER || level->device < 0)
				continue;
			for (unsigned t = 0; t < job->totals_count && !sum; t++)
				if (job->totals[t].device == level->device &&
				    same_device(owner[t], doc, level->device))
					sum = &job->totals[t];
			if (!sum) {
				sum = gm_arena_push(&job->arena, &job->totals, &job->totals_count,
						    sizeof(*sum));
				sum->device = level->device;
				owner = gm_realloc(owner, (job->totals_count + 1) * sizeof(*owner));
				owner[job->totals_count - 1] = doc;
			}
			sum->current_bytes += level->current_bytes;
			sum->current_count += level->current_count;
			sum->peak_bytes += level->peak_bytes;
			sum->physical_bytes += level->physical_bytes;
			sum->physical_peak_bytes += level->physical_peak_bytes;
			sum->allocations += level->allocations;
		}
	}
	free(owner);
}

static uint64_t peak_of(const struct gm_doc *doc)
{
	uint64_t peak = 0;

	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER && doc->levels[i].device >= 0)
			peak += doc->levels[i].peak_bytes;
	return peak;
}

static const char *size(struct gm_job *job, uint64_t bytes)
{
	char text[GM_FORMAT_BYTES];

	return gm_arena_strdup(&job->arena, gm_format_size(text, bytes));
}

/* "rank 3", or the pid where there are no ranks. */
static const char *who(struct gm_job *job, const struct gm_doc *doc)
{
	return doc->header->rank >= 0
		       ? gm_arena_printf(&job->arena, "rank %d", doc->header->rank)
		       : gm_arena_printf(&job->arena, "process %u", doc->header->pid);
}

static void judge_imbalance(struct gm_job *job)
{
	const struct gm_doc *low = job->docs[0], *high = job->docs[0];
	struct gm_finding *finding;
	uint64_t difference;

	for (unsigned i = 1; i < job->count; i++) {
		low = peak_of(job->docs[i]) < peak_of(low) ? job->docs[i] : low;
		high = peak_of(job->docs[i]) > peak_of(high) ? job->docs[i] : high;
	}
	difference = peak_of(high) - peak_of(low);
	if (difference < IMBALANCE_BYTES || difference < peak_of(high) / 100 * IMBALANCE_PERCENT)
		return;
	finding =
		gm_arena_push(&job->arena, &job->findings, &job->findings_count, sizeof(*finding));
	finding->id = "imbalance";
	finding->severity = GM_WARNING;
	finding->device = GM_HOST;
	finding->bytes = difference;
	finding->site = GM_NO_SITE;
	finding->title = gm_arena_printf(&job->arena, "%s reaches %s more than %s", who(job, high),
					 size(job, difference), who(job, low));
	finding->evidence = gm_arena_printf(&job->arena, "peaks of %s and %s",
					    size(job, peak_of(high)), size(job, peak_of(low)));
}

/* What the same finding of several ranks shares: its id, and its site's id or its title. */
struct told {
	const char *key, *ranks, *evidence;
	unsigned finding;
};

/* The same finding from many ranks is told once, with the ranks named. */
static void gather_findings(struct gm_job *job)
{
	struct told *told = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < job->count; i++) {
		struct gm_doc *doc = job->docs[i];

		for (unsigned k = 0; k < doc->findings_count; k++) {
			const struct gm_finding *from = &doc->findings[k];
			const char *key = from->site < doc->sites_count ? doc->sites[from->site].id
									: from->title;
			struct told *same = NULL;

			if (from->severity == GM_NOTE)
				continue;
			for (unsigned t = 0; t < count && !same; t++)
				if (strcmp(told[t].key, key) == 0 &&
				    strcmp(job->findings[told[t].finding].id, from->id) == 0)
					same = &told[t];
			if (same) {
				same->ranks = gm_arena_printf(&job->arena, "%s, %s", same->ranks,
							      who(job, doc));
				continue;
			}
			same = gm_arena_push(&job->arena, &told, &count, sizeof(*same));
			*same = (struct told){key, who(job, doc), from->evidence,
					      job->findings_count};
			*(struct gm_finding *)gm_arena_push(&job->arena, &job->findings,
							    &job->findings_count, sizeof(*from)) =
				*from;
		}
	}
	for (unsigned t = 0; t < count; t++) {
		struct gm_finding *finding = &job->findings[told[t].finding];

		finding->site = GM_NO_SITE;
		finding->evidence =
			gm_arena_printf(&job->arena, "%s: %s", told[t].ranks, told[t].evidence);
	}
}

struct gm_job *gm_job_open(char **paths, unsigned count, const struct gm_options *options,
			   void (*complain)(const char *sentence))
{
	struct gm_job *job = gm_realloc(NULL, sizeof(*job));
	char error[1024];

	memset(job, 0, sizeof(*job));
	job->docs = gm_arena_alloc(&job->arena, count, sizeof(struct gm_doc *));
	for (unsigned i = 0; i < count; i++) {
		struct gm_doc *doc = gm_doc_open(paths[i], options, error, sizeof(error));

		if (doc)
			job->docs[job->count++] = doc;
		else
			complain(error);
	}
	if (!job->count) {
		gm_job_free(job);
		return NULL;
	}
	if (job->count > 1) {
		qsort(job->docs, job->count, sizeof(struct gm_doc *), compare_docs);
		judge_imbalance(job);
		gather_findings(job);
	}
	sum_totals(job);
	return job;
}

void gm_job_free(struct gm_job *job)
{
	if (!job)
		return;
	for (unsigned i = 0; i < job->count; i++)
		gm_doc_free(job->docs[i]);
	gm_arena_free(&job->arena);
	free(job);
}
