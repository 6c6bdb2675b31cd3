/*
 * Comparing two documents by their sites' keys, see compare.h.
 */
#include "report/gate/compare.h"
#include "report/doc/frames.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *gm_site_key(struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_site_figures *record = &site->record;
	char *text = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);
	const char *key;

	if (!stream)
		return site->id;
	fprintf(stream, "%u %u %d", record->level, record->kind, record->device);
	for (unsigned i = 0; site->stack && i < site->stack->count; i++) {
		const struct gm_frame *frame = gm_stack_frame(site->stack, i);
		const char *module = gm_module_name(frame);

		if (frame->function)
			fprintf(stream, "|%s", frame->function);
		else
			fprintf(stream, "|%s+%llx", module ? module : "",
				(unsigned long long)frame->offset);
	}
	if (!site->stack || !site->stack->count)
		fprintf(stream, "|%s", site->function ? site->function : "");
	fclose(stream);
	key = gm_zone_strndup(&doc->zone, text, bytes);
	free(text);
	return key;
}

/* A site of either run with its key, for sorting. */
struct keyed {
	const char *key;
	struct gm_doc *doc;
	const struct gm_site *site;
	bool is_new;
};

static int compare_keyed(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	return order ? order : x->is_new - y->is_new;
}

static uint64_t distance(const struct gm_change *change, unsigned measure)
{
	uint64_t before = change->before[measure], after = change->after[measure];

	if (before == GM_NO_BYTES || after == GM_NO_BYTES)
		return 0;
	return after > before ? after - before : before - after;
}

static int compare_measure(const void *a, const void *b, void *measure)
{
	const struct gm_change *x = a, *y = b;
	unsigned first = *(const unsigned *)measure;

	for (unsigned m = first; m < GM_MEASURES; m++)
		if (distance(x, m) != distance(y, m))
			return distance(x, m) < distance(y, m) ? 1 : -1;
	return strcmp(x->key, y->key);
}

void gm_sort_changes(struct gm_change *changes, unsigned count, enum gm_measure measure)
{
	unsigned first = measure;

	if (count)
		qsort_r(changes, count, sizeof(*changes), compare_measure, &first);
}

bool gm_change_differs(const struct gm_change *change, enum gm_measure measure)
{
	uint64_t before = change->before[measure], after = change->after[measure];
	uint64_t by = distance(change, measure);

	if (measure != GM_MEASURE_TIME)
		return by != 0;
	return by >= 1000000 && by >= (after > before ? after : before) / 10;
}

static unsigned collect(struct gm_doc *doc, bool is_new, struct keyed *list)
{
	unsigned count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++)
		if (!doc->sites[i].hidden && doc->sites[i].record.allocations)
			list[count++] = (struct keyed){gm_site_key(doc, &doc->sites[i]), doc,
						       &doc->sites[i], is_new};
	return count;
}

static void add(struct gm_change *change, const struct keyed *keyed)
{
	const struct gm_site_figures *record = &keyed->site->record;
	const uint64_t values[GM_MEASURES] = {
		[GM_MEASURE_LIVE] = record->live_bytes,
		[GM_MEASURE_PEAK] = record->peak_bytes,
		[GM_MEASURE_AT_PEAK] = record->bytes_at_peak,
		[GM_MEASURE_ALLOCATED] = record->allocated_bytes,
		[GM_MEASURE_ALLOCATIONS] = record->allocations,
		[GM_MEASURE_TIME] = record->last_ns - record->first_ns,
	};
	uint64_t *sums = keyed->is_new ? change->after : change->before;

	change->key = keyed->key;
	change->doc = keyed->doc; /* new ones are sorted behind old ones */
	*(keyed->is_new ? &change->new_site : &change->old_site) = keyed->site;
	for (unsigned m = 0; m < GM_MEASURES; m++) {
		if (values[m] == GM_NO_BYTES || sums[m] == GM_NO_BYTES)
			sums[m] = GM_NO_BYTES;
		else
			sums[m] += values[m];
	}
}

static unsigned sites_of(struct gm_doc *const *docs, unsigned count)
{
	unsigned sites = 0;

	for (unsigned i = 0; i < count; i++)
		sites += docs[i]->sites_count;
	return sites;
}

static struct gm_change *group(struct gm_zone *zone, struct keyed *list, unsigned used,
			       unsigned *count)
{
	struct gm_change *changes = gm_zone_alloc(zone, used, sizeof(*changes));

	if (used)
		qsort(list, used, sizeof(*list), compare_keyed);
	*count = 0;
	for (unsigned i = 0; i < used; i++) {
		if (i == 0 || strcmp(list[i].key, list[i - 1].key) != 0)
			(*count)++;
		add(&changes[*count - 1], &list[i]);
	}
	gm_sort_changes(changes, *count, GM_MEASURE_LIVE);
	return changes;
}

static struct gm_change *compare(struct gm_doc *const *old_docs, unsigned old_count,
				 struct gm_doc *const *new_docs, unsigned new_count,
				 struct gm_zone *zone, unsigned *count)
{
	unsigned sites = sites_of(old_docs, old_count) + sites_of(new_docs, new_count);
	struct keyed *list = gm_realloc(NULL, sites * sizeof(*list));
	struct gm_change *changes;
	unsigned used = 0;

	for (unsigned i = 0; i < old_count; i++)
		if (!old_docs[i]->superseded)
			used += collect(old_docs[i], false, list + used);
	for (unsigned i = 0; i < new_count; i++)
		if (!new_docs[i]->superseded)
			used += collect(new_docs[i], true, list + used);
	changes = group(zone, list, used, count);
	free(list);
	return changes;
}

struct gm_change *gm_compare_jobs(struct gm_job *old_job, struct gm_job *new_job, unsigned *count)
{
	return compare(old_job->docs, old_job->count, new_job->docs, new_job->count, &new_job->zone,
		       count);
}

struct gm_change *gm_compare_docs(struct gm_doc *old_doc, struct gm_doc *new_doc, unsigned *count)
{
	return compare(&old_doc, 1, &new_doc, 1, &new_doc->zone, count);
}

const char *gm_change_name(const struct gm_change *change)
{
	if (!change->old_site)
		return "appeared";
	if (!change->new_site)
		return "vanished";
	if (gm_change_differs(change, GM_MEASURE_LIVE))
		return change->after[GM_MEASURE_LIVE] > change->before[GM_MEASURE_LIVE] ? "grew"
											: "shrank";
	return "same";
}
