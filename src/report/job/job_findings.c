/*
 * The findings of a job: naming the ranks that have one, and telling the same finding of many ranks
 * once.
 */
#include "report/job/internal.h"
#include "report/judge/findings.h"
#include "report/support/format.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_ONE_BY_ONE 4

struct gm_finding *gm_job_finding_new(struct gm_job *job, const char *id, enum gm_severity severity,
				      int device, uint64_t bytes)
{
	struct gm_finding *finding =
		gm_zone_push(&job->zone, &job->findings, &job->findings_count, sizeof(*finding));

	finding->id = id;
	finding->severity = severity;
	finding->device = device;
	finding->bytes = bytes;
	finding->site = GM_NO_SITE;
	return finding;
}

void gm_job_advise(struct gm_job *job, struct gm_finding *finding, const char *advice)
{
	const char **slot =
		gm_zone_push(&job->zone, &finding->advice, &finding->advice_count, sizeof(*slot));

	*slot = advice;
}

const char *gm_job_size(struct gm_job *job, uint64_t bytes)
{
	char text[GM_FORMAT_BYTES];

	return gm_zone_strdup(&job->zone, gm_format_size(text, bytes));
}

const char *gm_job_who(struct gm_job *job, const struct gm_doc *doc)
{
	return doc->header->rank >= 0 ? gm_job_printf(job, "rank %d", doc->header->rank)
				      : gm_job_printf(job, "process %u", doc->header->pid);
}

/* "0-6, 9" of ranks in ascending order. */
static const char *ranges(struct gm_job *job, const int *ranks, unsigned count)
{
	const char *text = "";

	for (unsigned i = 0, last; i < count; i = last + 1) {
		for (last = i; last + 1 < count && ranks[last + 1] <= ranks[last] + 1;)
			last++;
		text = gm_job_printf(job, "%s%s%d", text, i ? ", " : "", ranks[i]);
		if (ranks[last] > ranks[i])
			text = gm_job_printf(job, "%s%s%d", text,
					     ranks[last] > ranks[i] + 1 ? "-" : ", ", ranks[last]);
	}
	return text;
}

const char *gm_job_name_ranks(struct gm_job *job, struct gm_finding *finding,
			      const struct gm_doc *const *docs, unsigned count)
{
	int *ranks = gm_zone_alloc(&job->zone, count + 1, sizeof(*ranks));
	const char *text = "";
	unsigned named = 0;

	for (unsigned i = 0; i < count; i++)
		if (docs[i]->header->rank >= 0)
			ranks[named++] = docs[i]->header->rank;
	finding->ranks = ranks;
	finding->ranks_count = named;
	if (named == count && count > NAMED_ONE_BY_ONE)
		return gm_job_printf(job, "ranks %s (%u of %u)", ranges(job, ranks, named), count,
				     job->ranks);
	for (unsigned i = 0; i < count && i < NAMED_ONE_BY_ONE; i++)
		text = gm_job_printf(job, "%s%s%s", text, i ? ", " : "", gm_job_who(job, docs[i]));
	return count > NAMED_ONE_BY_ONE
		       ? gm_job_printf(job, "%s and %u others", text, count - NAMED_ONE_BY_ONE)
		       : text;
}

/* A finding and the processes that have it. */
struct told {
	const char *id;
	uint64_t key; /* its place, or its text */
	const struct gm_finding *worst;
	const struct gm_doc *worst_doc;
	const struct gm_doc **docs;
	unsigned docs_count;
	uint64_t bytes; /* of all; of what was refused the most */
	int device;	/* GM_HOST: not the same for all */
};

struct list {
	struct told *told;
	unsigned count;
};

static bool is_unit(const char *word, size_t length)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i]) == length && strncmp(units[i], word, length) == 0)
			return true;
	return false;
}

/* A hash of a title without its figures: "device 0 reaches 6.00 GiB more" is "device reaches more".
 */
static uint64_t hash_title(const char *title)
{
	uint64_t hash = 14695981039346656037u;

	while (*title) {
		size_t length = strcspn(title, " ");

		if (!isdigit((unsigned char)*title) && !is_unit(title, length))
			for (size_t i = 0; i < length; i++)
				hash = (hash ^ (unsigned char)title[i]) * 1099511628211u;
		title += length;
		title += strspn(title, " ");
	}
	return hash;
}

static struct told *find_told(struct gm_job *job, struct list *list, const struct gm_doc *doc,
			      const struct gm_finding *finding)
{
	uint64_t key = finding->site < doc->sites_count ? doc->sites[finding->site].place
							: hash_title(finding->title);
	struct told *told;

	for (unsigned i = 0; i < list->count; i++)
		if (list->told[i].key == key && strcmp(list->told[i].id, finding->id) == 0)
			return &list->told[i];
	told = gm_zone_push(&job->zone, &list->told, &list->count, sizeof(*told));
	told->id = finding->id;
	told->key = key;
	told->device = finding->device;
	return told;
}

/*
 * True if the bytes of findings of this kind add up: nobody holds memory that was asked for in
 * vain.
 */
static bool adds_up(const struct gm_finding *finding)
{
	return strncmp(finding->id, "oom", 3) != 0;
}

static void add_finding(struct gm_job *job, struct list *list, struct gm_doc *doc,
			const struct gm_finding *finding)
{
	struct told *told = find_told(job, list, doc, finding);
	uint64_t bytes = finding->bytes == GM_NO_BYTES ? 0 : finding->bytes;

	if (!told->docs_count || told->docs[told->docs_count - 1] != doc)
		*(const struct gm_doc **)gm_zone_push(&job->zone, &told->docs, &told->docs_count,
						      sizeof(struct gm_doc *)) = doc;
	told->bytes = !adds_up(finding) ? (bytes > told->bytes ? bytes : told->bytes)
					: told->bytes + bytes;
	if (told->device != finding->device)
		told->device = GM_HOST;
	if (!told->worst || finding->severity > told->worst->severity ||
	    (finding->severity == told->worst->severity && told->worst->bytes != GM_NO_BYTES &&
	     bytes > told->worst->bytes)) {
		told->worst = finding;
		told->worst_doc = doc;
	}
}

static void tell(struct gm_job *job, const struct told *told)
{
	const struct gm_finding *worst = told->worst;
	struct gm_finding *finding =
		gm_job_finding_new(job, told->id, worst->severity, told->device, told->bytes);
	const char *ranks = gm_job_name_ranks(job, finding, told->docs, told->docs_count);

	if (worst->bytes == GM_NO_BYTES)
		finding->bytes = GM_NO_BYTES;
	finding->title = worst->title;
	finding->advice = worst->advice;
	finding->advice_count = worst->advice_count;
	finding->evidence = worst->evidence ? worst->evidence : "";
	if (told->docs_count > 1 && told->bytes && adds_up(finding))
		finding->evidence =
			gm_job_printf(job, "%s: together %s, most in %s: %s", ranks,
				      gm_job_size(job, told->bytes),
				      gm_job_who(job, told->worst_doc), finding->evidence);
	else
		finding->evidence = gm_job_printf(job, "%s: %s", ranks, finding->evidence);
}

/* Notes of one process say little about a job, but what NCCL takes is the job's own cost. */
static bool is_worth_telling(const struct gm_finding *finding)
{
	return finding->severity > GM_NOTE || strcmp(finding->id, "nccl.memory") == 0;
}

/* True if the job has a finding of its own about this, which says more. */
static bool said_by_job(const struct gm_job *job, unsigned own, const struct gm_doc *doc,
			const struct gm_finding *finding)
{
	if (strcmp(finding->id, "context.stray") != 0)
		return false;
	for (unsigned i = 0; i < own; i++) {
		const struct gm_finding *of = &job->findings[i];

		for (unsigned k = 0; strcmp(of->id, finding->id) == 0 && k < of->ranks_count; k++)
			if (of->ranks[k] == doc->header->rank)
				return true;
	}
	return false;
}

void gm_job_gather(struct gm_job *job)
{
	unsigned own = job->findings_count;
	struct list list = {0};

	for (unsigned i = 0; i < job->count; i++) {
		struct gm_doc *doc = job->docs[i];

		for (unsigned k = 0; k < doc->findings_count && !doc->superseded; k++)
			if (is_worth_telling(&doc->findings[k]) &&
			    !said_by_job(job, own, doc, &doc->findings[k]))
				add_finding(job, &list, doc, &doc->findings[k]);
	}
	for (unsigned i = 0; i < list.count; i++)
		tell(job, &list.told[i]);
	gm_sort_findings(job->findings, job->findings_count);
}
