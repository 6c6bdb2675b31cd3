/*
 * A plan from runs: what each category holds at the peak, as a line over the batch. With one run
 * what follows the batch is told by category; with two or more it is measured.
 */
#include "report/plan/measure.h"
#include "report/plan/plan.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"
#include "account/kinds.h"
#include "account/sizes.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RUNS  16
#define MOST_PARTS 32

/* The bytes that a run holds at its peak on its fullest device, by purpose. */
struct sample {
	struct gm_doc *doc;
	double batch;
	double bytes[MOST_PARTS]; /* by number in `names` */
	double leaked;		  /* left out of `bytes` */
	uint32_t leak;		  /* the site that leaks most; GM_NO_SITE */
	double used, idle;	  /* the framework's blocks, and what it reserved beside them */
	uint64_t allocations;
};

struct study {
	struct gm_zone *zone;
	const char *names[MOST_PARTS];
	bool follows[MOST_PARTS]; /* one run: by what it is */
	unsigned names_count;
	struct sample samples[MOST_RUNS];
	unsigned count;
};

static unsigned number_of(struct study *study, const char *name)
{
	unsigned i;

	for (i = 0; i < study->names_count; i++)
		if (strcmp(study->names[i], name) == 0)
			return i;
	if (i == MOST_PARTS)
		return MOST_PARTS - 1;
	study->names[i] = name;
	return study->names_count++;
}

static void add(struct study *study, struct sample *sample, const char *name, double bytes)
{
	if (bytes > 0)
		sample->bytes[number_of(study, name)] += bytes;
}

static int fullest_device(const struct gm_doc *doc)
{
	const struct gm_level_record *most = NULL;

	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].level == GM_LEVEL_DRIVER && doc->levels[i].device >= 0 &&
		    (!most || doc->levels[i].physical_peak_bytes > most->physical_peak_bytes))
			most = &doc->levels[i];
	return most && most->peak_bytes ? most->device : GM_HOST;
}

/* Code and limits: what loading modules cost, by the driver's free bytes. */
static double code_bytes(const struct gm_doc *doc, int device)
{
	double bytes = 0;

	for (unsigned i = 0; i < doc->costs_count; i++)
		if (doc->costs[i].device == device && doc->costs[i].cost != GM_COST_CONTEXT)
			bytes += (double)doc->costs[i].bytes;
	return bytes > 0 ? bytes : 0;
}

/*
 * True if memory of a place follows the batch, where one run has to tell: activations do, and so
 * does memory that no rule knows and that the program gave back; the rest is there once.
 */
static bool follows_batch(const struct gm_site *site)
{
	if (strcmp(site->category, GM_PART_ACTIVATIONS) == 0 ||
	    strcmp(site->category, "data loading") == 0)
		return true;
	return strcmp(site->category, "other") == 0 && site->verdict != GM_HELD;
}

static const char *part_name(const struct gm_site *site)
{
	if (strcmp(site->category, "other") != 0)
		return site->category;
	return follows_batch(site) ? "other, given back" : "other, kept";
}

/*
 * Returns the part of a growing site's bytes at the peak that is its leak: the bytes beyond the
 * most that the site held above the floor of a window, and beyond the first window's floor.
 */
static double leaked_bytes(const struct gm_site *site)
{
	const struct gm_site_figures *record = &site->record;
	uint64_t swing = 0, first = 0, needed;

	if (site->verdict != GM_GROW)
		return 0;
	for (unsigned i = 0; i <= record->window_current && i < GM_WINDOWS; i++) {
		const struct gm_window window = gm_site_window(site, i);

		if (!first && window.max_bytes)
			first = window.min_bytes ? window.min_bytes : record->max_alloc_bytes;
		if (window.max_bytes - window.min_bytes > swing)
			swing = window.max_bytes - window.min_bytes;
	}
	needed = swing > first ? swing : first;
	return record->bytes_at_peak > needed ? (double)(record->bytes_at_peak - needed) : 0;
}

static void leave_out(struct sample *sample, uint32_t number, double leaked, double *most)
{
	sample->leaked += leaked;
	if (leaked > *most) {
		*most = leaked;
		sample->leak = number;
	}
}

/* Parts by category, of PyTorch's blocks or of the driver's allocations. */
static void add_sites(struct study *study, struct sample *sample, const struct gm_doc *doc,
		      int device)
{
	unsigned level = doc->torch ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER;
	double most = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];
		const struct gm_site_figures *record = &site->record;
		bool library =
			doc->torch && record->level == GM_LEVEL_DRIVER && !site->torch_segments;

		if (record->device != device || !gm_kind_owned(record->kind) ||
		    !record->bytes_at_peak || (record->level != level && !library))
			continue;
		if (library) {
			add(study, sample, "libraries' own", (double)record->bytes_at_peak);
			continue;
		}
		leave_out(sample, i, leaked_bytes(site), &most);
		add(study, sample, part_name(site),
		    (double)record->bytes_at_peak - leaked_bytes(site));
		study->follows[number_of(study, part_name(site))] = follows_batch(site);
	}
}

/*
 * Adds the bytes that a framework has reserved beside its blocks, and those that the driver's
 * rounding adds.
 */
static void add_levels(struct study *study, struct sample *sample, const struct gm_doc *doc,
		       int device)
{
	const struct gm_level_record *driver = gm_doc_level(doc, device, GM_LEVEL_DRIVER);

	sample->allocations = driver->allocations;
	if (!doc->torch) {
		add(study, sample, "rounding to pages",
		    (double)driver->physical_peak_bytes - (double)driver->peak_bytes);
		sample->used = (double)driver->physical_peak_bytes;
		return;
	}
	for (unsigned i = 0; i < doc->torches_count; i++) {
		const struct gm_torch_record *torch = &doc->torches[i];

		if (torch->device != device)
			continue;
		sample->used = (double)torch->allocated_peak_bytes;
		sample->idle = (double)torch->reserved_peak_bytes - sample->used;
	}
}

static bool take_sample(struct study *study, struct gm_doc *doc, uint64_t batch)
{
	struct sample *sample = &study->samples[study->count];
	int device = fullest_device(doc);
	const struct gm_device *of;

	if (device == GM_HOST)
		return false;
	of = gm_doc_device(doc, device);
	sample->doc = doc;
	sample->batch = (double)batch;
	sample->leak = GM_NO_SITE;
	if (of && of->record.context_bytes != GM_NO_BYTES)
		add(study, sample, GM_PART_CONTEXT, (double)of->record.context_bytes);
	add(study, sample, "modules and limits", code_bytes(doc, device));
	add_sites(study, sample, doc, device);
	add_levels(study, sample, doc, device);
	study->count++;
	return true;
}

/* Least squares: value = *fixed + *slope * batch. */
static void fit_line(const struct study *study, unsigned part, double *fixed, double *slope)
{
	double n = study->count, sx = 0, sy = 0, sxx = 0, sxy = 0, spread;

	for (unsigned i = 0; i < study->count; i++) {
		double x = study->samples[i].batch, y = study->samples[i].bytes[part];

		sx += x;
		sy += y;
		sxx += x * x;
		sxy += x * y;
	}
	spread = n * sxx - sx * sx;
	*slope = spread > 0 ? (n * sxy - sx * sy) / spread : 0;
	*fixed = (sy - *slope * sx) / n;
}

static const char *measured_rule(struct gm_zone *zone, unsigned runs, double fixed, double slope)
{
	char one[GM_FORMAT_BYTES], other[GM_FORMAT_BYTES];

	if (fabs(slope) < 1)
		return gm_zone_printf(zone, "measured in %u runs: the same at every batch", runs);
	if (fabs(fixed) < 4096)
		return gm_zone_printf(zone, "measured in %u runs: %s a unit of batch", runs,
				      gm_format_amount(other, slope));
	return gm_zone_printf(zone, "measured in %u runs: %s, and %s a unit of batch", runs,
			      gm_format_amount(one, fixed),
			      gm_format_amount(other, slope));
}

static bool is_rounding(const struct study *study, unsigned part)
{
	return strcmp(study->names[part], "rounding to pages") == 0;
}

/*
 * True if runs have equally many allocations, so that only their sizes differ: each is rounded up
 * by about the same, and rounding does not follow the batch though two runs may look like it.
 */
static bool sizes_differ(const struct study *study)
{
	for (unsigned i = 1; i < study->count; i++)
		if (study->samples[i].allocations != study->samples[0].allocations)
			return false;
	return true;
}

static void add_measured(struct study *study, struct gm_plan *plan)
{
	struct gm_zone *zone = study->zone;
	const struct sample *last = &study->samples[study->count - 1];

	for (unsigned p = 0; p < study->names_count; p++) {
		double fixed, slope;

		if (study->count == 1) {
			bool follows = study->follows[p];

			gm_plan_add(zone, plan, study->names[p], follows ? 0 : last->bytes[p],
				    follows ? last->bytes[p] / last->batch : 0,
				    follows ? "measured at the peak; assumed to follow the batch"
					    : "measured at the peak; assumed to be there once");
			continue;
		}
		fit_line(study, p, &fixed, &slope);
		if (is_rounding(study, p) && sizes_differ(study)) {
			fixed += slope * last->batch;
			slope = 0;
		}
		gm_plan_add(zone, plan, study->names[p], fixed, slope,
			    measured_rule(zone, study->count, fixed, slope));
	}
}

static int compare_samples(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return x->batch < y->batch ? -1 : x->batch > y->batch;
}

/* Returns the largest distance of the runs' own sums from the line. */
static double largest_deviation(const struct study *study, const struct gm_plan *plan)
{
	double most = 0;

	for (unsigned i = 0; i < study->count; i++) {
		double line = 0, own = 0;

		for (unsigned p = 0; p < plan->parts_count; p++) {
			line += plan->parts[p].fixed_bytes +
				plan->parts[p].per_batch_bytes * study->samples[i].batch;
			own += study->samples[i].bytes[p];
		}
		most = fabs(line - own) > most ? fabs(line - own) : most;
	}
	return most;
}

static bool check_samples(const struct study *study, char *error, size_t bytes)
{
	if (study->count > 1 && study->samples[0].batch == study->samples[study->count - 1].batch) {
		snprintf(error, bytes,
			 "all runs have the batch %.0f; a slope needs two that differ "
			 "(--batch N1,N2 in the order of the files)",
			 study->samples[0].batch);
		return false;
	}
	return true;
}

/* A leak would fill any memory in the end, whatever the batch: it is no part of the need. */
static void note_leak(struct gm_zone *zone, struct gm_plan *plan, const struct sample *sample)
{
	char bytes[GM_FORMAT_BYTES];

	if (sample->leak == GM_NO_SITE)
		return;
	gm_plan_note(
		zone, plan,
		gm_zone_printf(zone,
			       "a leak is left out: %s that %s and the like had retained at "
			       "the peak of batch %.0f and that goes on growing (gpumem-report "
			       "leaks); the plan holds once it is mended",
			       gm_format_size(bytes, gm_whole_bytes(sample->leaked)),
			       gm_stack_label(sample->doc, sample->doc->sites[sample->leak].stack),
			       sample->batch));
}

struct gm_plan *gm_plan_measure(struct gm_zone *zone, struct gm_doc **docs, const uint64_t *batches,
				unsigned count, const struct gm_plan_options *options, char *error,
				size_t error_bytes)
{
	struct study *study = gm_zone_alloc(zone, 1, sizeof(*study));
	struct gm_plan *plan = gm_zone_alloc(zone, 1, sizeof(*plan));
	const struct gm_device *device;
	const struct sample *last;

	study->zone = zone;
	for (unsigned i = 0; i < count && i < MOST_RUNS; i++)
		if (!take_sample(study, docs[i], batches[i])) {
			snprintf(error, error_bytes,
				 "%s has no device memory to plan from; record a run that does "
				 "the work",
				 docs[i]->path);
			return NULL;
		}
	qsort(study->samples, study->count, sizeof(*study->samples), compare_samples);
	if (!check_samples(study, error, error_bytes))
		return NULL;
	last = &study->samples[study->count - 1];
	plan->measured = true;
	plan->runs = study->count;
	plan->parameters = options->parameters;
	plan->batch = (uint64_t)last->batch;
	plan->fragmentation = last->used > 0 && last->idle > 0 ? last->idle / last->used : 0;
	add_measured(study, plan);
	plan->fit_error = study->count > 2 ? largest_deviation(study, plan) : 0;
	plan->rounding_bytes = GM_PAGE_BYTES + plan->fit_error;
	device = gm_doc_device(docs[0], fullest_device(docs[0]));
	plan->limit_bytes = gm_device_limit(device);
	plan->device_name = device ? device->name : NULL;
	note_leak(zone, plan, last);
	if (study->count == 1)
		gm_plan_note(
			zone, plan,
			"one run: what follows the batch is assumed from its category; a second "
			"run with another batch makes it measured");
	if (count > MOST_RUNS)
		gm_plan_note(zone, plan, "more than 16 runs were given: the first 16 count");
	return plan;
}
