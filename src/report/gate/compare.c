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
	const struct gm_site_record *record = &site->record;
	char *text = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);
	const char *key;

	if (!stream)
		return site->id;
	fprintf(stream, "%u %u %d", record->level, record->kind, record->device);
	for (unsigned i = 0; site->stack && i < site->stack->count; i++) {
		const struct gm_frame *frame = &site->stack->frames[i];
		const char *module = gm_module_name(frame);

		if (frame->function)
			fprintf(stream, "|%s", frame->function);
		else
			fprintf(stream, "|%s+%llx", module ? module : "",
				(unsigned long long)frame->offset);
	}
	if (!site->stack)
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

static uint64_t distance(const struct gm_change *change)
{
	return change->new_bytes > change->old_bytes ? change->new_bytes - change->old_bytes
						     : change->old_bytes - change->new_bytes;
}

static int compare_changes(const void *a, const void *b)
{
	const struct gm_change *x = a, *y = b;

	if (distance(x) != distance(y))
		return distance(x) < distance(y) ? 1 : -1;
	return strcmp(x->key, y->key);
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
	const struct gm_site_record *record = &keyed->site->record;

	change->key = keyed->key;
	change->doc = keyed->doc; /* new ones are sorted behind old ones */
	if (keyed->is_new) {
		change->new_site = keyed->site;
		change->new_bytes += record->live_bytes;
		change->new_peak_bytes += record->peak_bytes;
		change->new_count += record->allocations;
	} else {
		change->old_site = keyed->site;
		change->old_bytes += record->live_bytes;
		change->old_peak_bytes += record->peak_bytes;
		change->old_count += record->allocations;
	}
}

static unsigned sites_of(struct gm_doc *const *docs, unsigned count)
{
	unsigned sites = 0;

	for (unsigned i = 0; i < count; i++)
		sites += docs[i]->sites_count;
	return sites;
}

static struct gm_change *compare(struct gm_zone *zone, struct keyed *list, unsigned used,
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
	if (*count)
		qsort(changes, *count, sizeof(*changes), compare_changes);
	return changes;
}

struct gm_change *gm_compare_jobs(struct gm_job *old_job, struct gm_job *new_job, unsigned *count)
{
	unsigned sites =
		sites_of(old_job->docs, old_job->count) + sites_of(new_job->docs, new_job->count);
	struct keyed *list = gm_realloc(NULL, sites * sizeof(*list));
	struct gm_change *changes;
	unsigned used = 0;

	for (unsigned i = 0; i < old_job->count; i++)
		if (!old_job->docs[i]->superseded)
			used += collect(old_job->docs[i], false, list + used);
	for (unsigned i = 0; i < new_job->count; i++)
		if (!new_job->docs[i]->superseded)
			used += collect(new_job->docs[i], true, list + used);
	changes = compare(&new_job->zone, list, used, count);
	free(list);
	return changes;
}

const char *gm_change_name(const struct gm_change *change)
{
	if (!change->old_site)
		return "appeared";
	if (!change->new_site)
		return "vanished";
	if (change->new_bytes != change->old_bytes)
		return change->new_bytes > change->old_bytes ? "grew" : "shrank";
	return "same";
}
