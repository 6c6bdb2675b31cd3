/*
 * Findings about a job as a whole: imbalance, context.stray on other ranks' devices, and
 * job.first-failure. Compares the processes that count (job.h).
 */
#include "report/job/internal.h"
#include "report/stacks/labels.h"
#include <stdlib.h>
#include <string.h>

#define IMBALANCE_PERCENT 20
#define IMBALANCE_BYTES	  (256ull << 20)
#define STRAY_BYTES	  (16ull << 20)

/* Peaks of all devices of a process, driver level. */
static uint64_t peak_of(const struct gm_doc *doc)
{
	uint64_t peak = 0;

	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER && doc->levels[i].device >= 0)
			peak += doc->levels[i].peak_bytes;
	return peak;
}

static uint64_t peak_on(const struct gm_doc *doc, int device)
{
	const struct gm_level_record *level = gm_doc_level(doc, device, GM_LEVEL_DRIVER);

	return level ? level->peak_bytes : 0;
}

/* ---- imbalance ---- */

/* True for processes to compare: ranks where there are some, else those that used a device. */
static bool is_worker(const struct gm_job *job, const struct gm_doc *doc)
{
	bool ranks = job->docs[job->count - 1]->header->rank >= 0;

	return !doc->superseded && (ranks ? doc->header->rank >= 0 : peak_of(doc) > 0);
}

static int compare_sizes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* ", median ..." of the workers' peaks; of two workers there is nothing between. */
static const char *median_peak(struct gm_job *job)
{
	uint64_t *peaks = gm_realloc(NULL, job->count * sizeof(*peaks)), median;
	unsigned count = 0;

	for (unsigned i = 0; i < job->count; i++)
		if (is_worker(job, job->docs[i]))
			peaks[count++] = peak_of(job->docs[i]);
	qsort(peaks, count, sizeof(*peaks), compare_sizes);
	median = count ? peaks[count / 2] : 0;
	free(peaks);
	return count > 2 ? gm_job_printf(job, ", median %s", gm_job_size(job, median)) : "";
}

static uint64_t category_at_peak(const struct gm_doc *doc, const char *category)
{
	unsigned level = doc->torch ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < doc->categories_count; i++)
		if (doc->categories[i].device >= 0 && doc->categories[i].level == level &&
		    strcmp(doc->categories[i].category, category) == 0)
			bytes += doc->categories[i].bytes_at_peak;
	return bytes;
}

/* "; most of it in activations: 8.00 GiB against 2.00 GiB", "" if no category has more. */
static const char *differing_category(struct gm_job *job, const struct gm_doc *high,
				      const struct gm_doc *low)
{
	uint64_t most = 0, with = 0;
	const char *name = NULL;

	for (unsigned i = 0; i < high->categories_count; i++) {
		const char *category = high->categories[i].category;
		uint64_t more = category_at_peak(high, category),
			 less = category_at_peak(low, category);

		if (strcmp(category, "other") != 0 && more > less && more - less > most) {
			most = more - less;
			with = more;
			name = category;
		}
	}
	return name ? gm_job_printf(job, "; most of it in %s: %s against %s", name,
				    gm_job_size(job, with), gm_job_size(job, with - most))
		    : "";
}

static void judge_imbalance(struct gm_job *job)
{
	const struct gm_doc *low = NULL, *high = NULL;
	struct gm_finding *finding;
	uint64_t difference;

	for (unsigned i = 0; i < job->count; i++) {
		const struct gm_doc *doc = job->docs[i];

		if (!is_worker(job, doc))
			continue;
		low = !low || peak_of(doc) < peak_of(low) ? doc : low;
		high = !high || peak_of(doc) > peak_of(high) ? doc : high;
	}
	difference = high ? peak_of(high) - peak_of(low) : 0;
	if (difference < IMBALANCE_BYTES || difference < peak_of(high) / 100 * IMBALANCE_PERCENT)
		return;
	finding = gm_job_finding_new(job, "imbalance", GM_WARNING, GM_HOST, difference);
	gm_job_name_ranks(job, finding, (const struct gm_doc *[]){high}, 1);
	finding->title = gm_job_printf(job, "%s reaches %s more than %s", gm_job_who(job, high),
				       gm_job_size(job, difference), gm_job_who(job, low));
	finding->evidence =
		gm_job_printf(job, "peaks of %s and %s%s%s", gm_job_size(job, peak_of(high)),
			      gm_job_size(job, peak_of(low)), median_peak(job),
			      differing_category(job, high, low));
	gm_job_advise(
		job, finding,
		gm_job_printf(job,
			      "gpumem-report sites --at peak %s shows who holds more there; the "
			      "batch that fits is that of the fullest rank",
			      high->path));
}

/* ---- contexts on devices that other ranks work on ---- */

struct stray {
	const struct gm_doc *owner; /* works on the device */
	int device;		    /* as the owner numbers it */
	const struct gm_doc **guests;
	unsigned guests_count;
	uint64_t bytes, most;
	const struct gm_stack *stack; /* stack at which the largest was made */
	const struct gm_doc *most_doc;
};

static bool is_stray(const struct gm_doc *doc, const struct gm_device *device)
{
	return doc->devices_count > 1 && device->record.context_bytes &&
	       device->record.context_bytes != GM_NO_BYTES &&
	       peak_on(doc, device->index) < STRAY_BYTES;
}

/* Another process that has memory on the device; NULL. Of several the one with most. */
static const struct gm_doc *owner_of(const struct gm_job *job, const struct gm_doc *doc, int device,
				     int *owners_number)
{
	const struct gm_doc *owner = NULL;
	uint64_t most = STRAY_BYTES;

	for (unsigned i = 0; i < job->count; i++) {
		const struct gm_doc *other = job->docs[i];

		for (unsigned k = 0; k < other->devices_count && other != doc; k++) {
			int number = other->devices[k].index;

			if (other->superseded || peak_on(other, number) < most ||
			    !gm_same_device(doc, device, other, number))
				continue;
			most = peak_on(other, number);
			owner = other;
			*owners_number = number;
		}
	}
	return owner;
}

static void add_stray(struct gm_job *job, struct stray **strays, unsigned *count,
		      struct gm_doc *doc, const struct gm_device *device)
{
	uint64_t bytes = device->record.context_bytes;
	struct stray *stray = NULL;
	const struct gm_doc *owner;
	int number = 0;

	owner = owner_of(job, doc, device->index, &number);
	if (!owner)
		return;
	for (unsigned i = 0; i < *count && !stray; i++)
		if ((*strays)[i].owner == owner && (*strays)[i].device == number)
			stray = &(*strays)[i];
	if (!stray)
		stray = gm_zone_push(&job->zone, strays, count, sizeof(*stray));
	stray->owner = owner;
	stray->device = number;
	stray->bytes += bytes;
	*(const struct gm_doc **)gm_zone_push(&job->zone, &stray->guests, &stray->guests_count,
					      sizeof(struct gm_doc *)) = doc;
	if (bytes <= stray->most)
		return;
	stray->most = bytes;
	stray->most_doc = doc;
	stray->stack = device->record.context_stack < doc->stacks_count
			       ? &doc->stacks[device->record.context_stack]
			       : NULL;
}

static void tell_stray(struct gm_job *job, const struct stray *stray)
{
	struct gm_finding *finding =
		gm_job_finding_new(job, "context.stray", GM_WARNING, stray->device, stray->bytes);
	const char *guests = gm_job_name_ranks(job, finding, stray->guests, stray->guests_count);
	bool one = stray->guests_count == 1;

	finding->title = gm_job_printf(job, "%s keep%s %s on device %d, which %s works on", guests,
				       one ? "s a context of" : " contexts of together",
				       gm_job_size(job, stray->bytes), stray->device,
				       gm_job_who(job, stray->owner));
	finding->evidence = gm_job_printf(
		job, "%s: made at %s; almost no memory of %s is there",
		one ? guests
		    : gm_job_printf(job, "%s for one, in %s", gm_job_size(job, stray->most),
				    gm_job_who(job, stray->most_doc)),
		gm_stack_label((struct gm_doc *)stray->most_doc, stray->stack),
		one ? "its own" : "their own");
	gm_job_advise(
		job, finding,
		"set the device before the first CUDA call (torch.cuda.set_device(LOCAL_RANK), "
		"map_location of torch.load, device_id of init_process_group), or give each rank "
		"its device by CUDA_VISIBLE_DEVICES");
}

static void judge_strays(struct gm_job *job)
{
	struct stray *strays = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < job->count; i++) {
		struct gm_doc *doc = job->docs[i];

		for (unsigned k = 0; k < doc->devices_count && !doc->superseded; k++)
			if (is_stray(doc, &doc->devices[k]))
				add_stray(job, &strays, &count, doc, &doc->devices[k]);
	}
	for (unsigned i = 0; i < count; i++)
		tell_stray(job, &strays[i]);
}

/* ---- the first rank to fail ---- */

struct failure {
	const struct gm_doc *doc;
	const struct gm_oom *oom; /* NULL: it was killed */
	uint64_t at_ns;		  /* since 1970 */
};

static struct failure failure_of(const struct gm_doc *doc)
{
	uint64_t start = doc->header->started_realtime_ns;
	struct failure failure = {.doc = doc};

	for (unsigned i = 0; i < doc->ooms_count; i++)
		if (!failure.oom || doc->ooms[i].record.time_ns < failure.oom->record.time_ns)
			failure.oom = &doc->ooms[i];
	if (failure.oom)
		failure.at_ns = start + failure.oom->record.time_ns;
	else if (strcmp(doc->end, "killed") == 0)
		failure.at_ns = start + doc->header->last_event_ns;
	return failure;
}

static int compare_failures(const void *a, const void *b)
{
	const struct failure *x = a, *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static const char *seconds_between(struct gm_job *job, uint64_t from, uint64_t to)
{
	return gm_job_printf(job, "%.3f s", (double)(to - from) / 1e9);
}

/* "; 3 others failed after it, rank 1 0.250 s later": ordered by time. */
static const char *others(struct gm_job *job, const struct failure *failures, unsigned count)
{
	bool hosts = false;

	if (count < 2)
		return "; no other rank failed";
	for (unsigned i = 1; i < count; i++)
		hosts = hosts || (failures[i].doc->host && failures[0].doc->host &&
				  strcmp(failures[i].doc->host, failures[0].doc->host) != 0);
	return gm_job_printf(job, "; %u of %u failed in all, next %s %s later%s", count, job->ranks,
			     gm_job_who(job, failures[1].doc),
			     seconds_between(job, failures[0].at_ns, failures[1].at_ns),
			     hosts ? " by the clocks of their machines" : "");
}

static void tell_failure(struct gm_job *job, const struct failure *failures, unsigned count)
{
	const struct failure *first = &failures[0];
	const struct gm_doc *doc = first->doc;
	const char *who = gm_job_who(job, doc), *host = doc->host ? doc->host : "an unknown host";
	struct gm_finding *finding =
		gm_job_finding_new(job, "job.first-failure", first->oom ? GM_ERROR : GM_WARNING,
				   first->oom ? first->oom->record.device : GM_HOST,
				   first->oom ? first->oom->record.requested_bytes : GM_NO_BYTES);

	gm_job_name_ranks(job, finding, &doc, 1);
	if (first->oom)
		finding->title = gm_job_printf(
			job, "%s on %s failed first: out of memory (%s), asked for %s at %s", who,
			host, first->oom->verdict,
			gm_job_size(job, first->oom->record.requested_bytes),
			gm_stack_label((struct gm_doc *)doc, first->oom->stack));
	else
		finding->title = gm_job_printf(job, "%s on %s was killed first", who, host);
	finding->evidence = gm_job_printf(
		job, "%s after its start%s%s",
		seconds_between(job, doc->header->started_realtime_ns, first->at_ns),
		first->oom ? "" : " it made its last call; nothing ran out of memory before",
		others(job, failures, count));
	gm_job_advise(job, finding,
		      gm_job_printf(job,
				    "gpumem-report %s %s tells more; what other ranks report after "
				    "that (timeouts, broken connections) follows from it",
				    first->oom ? "oom" : "summary", doc->path));
}

static void judge_failures(struct gm_job *job)
{
	struct failure *failures = gm_realloc(NULL, job->count * sizeof(*failures));
	unsigned count = 0;

	for (unsigned i = 0; i < job->count; i++) {
		struct failure failure = failure_of(job->docs[i]);

		if (failure.at_ns && !job->docs[i]->superseded)
			failures[count++] = failure;
	}
	qsort(failures, count, sizeof(*failures), compare_failures);
	if (count)
		tell_failure(job, failures, count);
	free(failures);
}

void gm_job_judge(struct gm_job *job)
{
	judge_failures(job);
	judge_imbalance(job);
	judge_strays(job);
}
