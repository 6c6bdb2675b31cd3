/*
 * Opening the files of a job, which of them count, and summing their totals.
 */
#include "report/job/job.h"
#include "report/doc/options.h"
#include "report/job/internal.h"
#include "report/open/open.h"
#include "report/support/progress.h"
#include "report/symbols/symbolize.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int gm_compare_ranks(const struct gm_doc *a, const struct gm_doc *b)
{
	if (a->header->rank != b->header->rank)
		return a->header->rank < b->header->rank ? -1 : 1;
	return strverscmp(a->path, b->path);
}

static int compare_docs(const void *a, const void *b)
{
	return gm_compare_ranks(*(struct gm_doc *const *)a, *(struct gm_doc *const *)b);
}

/* Devices are told apart by their uuid and host; without a uuid by their number. */
bool gm_same_device(const struct gm_doc *a, int device_a, const struct gm_doc *b, int device_b)
{
	const struct gm_device *x = gm_doc_device(a, device_a), *y = gm_doc_device(b, device_b);

	if (a->host && b->host && strcmp(a->host, b->host) != 0)
		return false;
	if (x && y && x->uuid && y->uuid)
		return strcmp(x->uuid, y->uuid) == 0;
	return device_a == device_b;
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

/* True if `path` is `of` with `tail` and a number behind it. */
static bool is_numbered(const char *path, const char *of, const char *tail)
{
	size_t length = strlen(of), more = strlen(tail);

	return strncmp(path, of, length) == 0 && strncmp(path + length, tail, more) == 0 &&
	       isdigit((unsigned char)path[length + more]);
}

static uint64_t ended_realtime(const struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;

	return header->started_realtime_ns + (header->ended_ns > header->last_event_ns
						      ? header->ended_ns
						      : header->last_event_ns);
}

/* Of the same process: a copy counts neither beside the file itself nor beside a later copy. */
static bool is_copy_of(const struct gm_doc *doc, const struct gm_doc *other)
{
	if (!(doc->header->features & GM_FEATURE_COPY))
		return false;
	if (!(other->header->features & GM_FEATURE_COPY))
		return true;
	if (other->header->last_event_ns == doc->header->last_event_ns)
		return strcmp(other->path, doc->path) > 0;
	return other->header->last_event_ns > doc->header->last_event_ns;
}

/* Why `doc` does not count beside `other`; NULL if it does. */
static const char *superseded_by(const struct gm_doc *doc, const struct gm_doc *other)
{
	bool same_process = doc->header->pid == other->header->pid &&
			    doc->header->started_realtime_ns == other->header->started_realtime_ns;

	if (doc->header->rank != other->header->rank)
		return NULL;
	if (same_process && (is_numbered(doc->path, other->path, ".snap") || is_copy_of(doc, other)))
		return "snapshot";
	if (same_process && doc->archive && !other->archive)
		return "archive";
	if (other->header->started_realtime_ns <= ended_realtime(doc))
		return NULL;
	if (is_numbered(doc->path, other->path, ".old"))
		return "earlier attempt";
	return doc->header->rank >= 0 && doc->job && other->job && strcmp(doc->job, other->job) == 0
		       ? "earlier attempt"
		       : NULL;
}

unsigned gm_find_superseded(struct gm_doc *const *docs, unsigned count)
{
	unsigned ranks = 0;

	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = i + 1;
		     k < count && docs[k]->header->rank == docs[i]->header->rank; k++) {
			struct gm_doc *a = docs[i], *b = docs[k];

			if (!a->superseded)
				a->superseded = superseded_by(a, b);
			if (!b->superseded)
				b->superseded = superseded_by(b, a);
		}
		ranks += !docs[i]->superseded;
	}
	return ranks;
}

static void open_docs(struct gm_job *job, char **paths, unsigned count,
		      const struct gm_options *options, void (*complain)(const char *sentence))
{
	struct gm_options shared = *options;
	char error[1024];

	if (options->symbols)
		shared.shared_symbols = job->symbols =
			gm_symbols_new(&job->zone, options->symbol_cache);
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

struct gm_job *gm_job_open(char **paths, unsigned count, const struct gm_options *options,
			   void (*complain)(const char *sentence))
{
	struct gm_job *job = gm_realloc(NULL, sizeof(*job));

	memset(job, 0, sizeof(*job));
	job->several = count > 1;
	job->docs = gm_zone_alloc(&job->zone, count, sizeof(struct gm_doc *));
	open_docs(job, paths, count, options, complain);
	if (!job->count) {
		gm_job_free(job);
		return NULL;
	}
	qsort(job->docs, job->count, sizeof(struct gm_doc *), compare_docs);
	job->ranks = gm_find_superseded(job->docs, job->count);
	sum_totals(job);
	if (job->count > 1) {
		gm_job_judge(job);
		gm_job_shares(job);
		gm_job_gather(job);
	}
	return job;
}

void gm_job_free(struct gm_job *job)
{
	if (!job)
		return;
	for (unsigned i = 0; i < job->count; i++)
		gm_doc_close(job->docs[i]);
	gm_symbols_free(job->symbols);
	gm_zone_free(&job->zone);
	free(job);
}
