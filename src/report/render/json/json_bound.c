/*
 * Documents whose lists are bounded, see json_bound.h.
 */
#include "report/render/json/json_bound.h"
#include <stdlib.h>
#include <string.h>

/* Lists that are one thing each, or have a row for each device, level, gate or file. */
static const char *const whole_lists[] = {
	"advice", "chain",	"command", "devices", "first_free_stack", "fragmentation",
	"gates",  "holes",	"ledger",  "pools",   "ranks",		  "rows",
	"runs",	  "stack",	"timeline", "torch",  "totals",		  "usage",
	"vmm",	  "baseline",	NULL};

/* Values whose lists have a row for each thing that the command line names, or add up to a sum. */
static const char *const whole_values[] = {"plan", "whatif", "whatif_run", NULL};

/* Keys whose strings are ids of sites. */
static const char *const site_keys[] = {"site",	    "sites",	"grow",	   "held",
					"old_site", "new_site", "oom_site", NULL};

static bool is_among(const char *key, const char *const *keys)
{
	for (; *keys; keys++)
		if (!strcmp(key, *keys))
			return true;
	return false;
}

static void cut(json_t *list, size_t most)
{
	while (json_array_size(list) > most)
		json_array_remove(list, json_array_size(list) - 1);
}

static bool comes_before(const json_t *one, const json_t *other, const char *name)
{
	json_int_t a = json_integer_value(one), b = json_integer_value(other);

	if (!json_is_integer(one) || !json_is_integer(other))
		return json_is_integer(one);
	return !strcmp(name, "min") ? a < b : a > b;
}

/* Merges each `step` points to one, in place: the least of `min`, the most of `max`, the last. */
static void merge_list(json_t *list, const char *name, size_t step)
{
	size_t count = json_array_size(list), i;

	for (i = 0; i < count; i++) {
		json_t *point = json_array_get(list, i);

		if (i % step == 0 || !strcmp(name, "last") ||
		    comes_before(point, json_array_get(list, i / step), name))
			json_array_set(list, i / step, point);
	}
	cut(list, (count + step - 1) / step);
}

static void merge_points(json_t *series, size_t most)
{
	static const char *const names[] = {"min", "max", "last"};
	size_t count = json_array_size(json_object_get(series, "last"));
	size_t step = most ? (count + most - 1) / most : count;
	double width_s = json_number_value(json_object_get(series, "width_s"));

	if (step <= 1 && most)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		json_t *list = json_object_get(series, names[i]);

		if (most)
			merge_list(list, names[i], step);
		else
			cut(list, 0);
	}
	if (most)
		json_object_set_new(series, "width_s", json_real(width_s * (double)step));
}

void gm_json_bound(const struct gm_json_bound *bound, const char *key, json_t *value)
{
	struct gm_json_bound inner = *bound;
	const char *name;
	json_t *member;
	size_t i;

	if (is_among(key, whole_values))
		inner.most = UINT32_MAX;
	if (json_is_string(value) && is_among(key, site_keys))
		json_object_set_new(bound->named, json_string_value(value), json_true());
	if (json_is_object(value) && !strcmp(key, "timeline"))
		merge_points(value, inner.most);
	else
		json_object_foreach(value, name, member)
			gm_json_bound(&inner, name, member);
	if (json_is_array(value) && !is_among(key, whole_lists))
		cut(value, inner.most);
	json_array_foreach(value, i, member)
		gm_json_bound(&inner, key, member);
}

struct ranked {
	uint64_t value, peak_bytes;
	const struct gm_site *site;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	if (x->peak_bytes != y->peak_bytes)
		return x->peak_bytes < y->peak_bytes ? 1 : -1;
	return strcmp(x->site->id, y->site->id);
}

const unsigned *gm_json_ranked_sites(struct gm_doc *doc, unsigned *count)
{
	struct ranked *ranked = gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*ranked));
	unsigned *indices;

	*count = 0;
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		if (gm_site_is_shown(site))
			ranked[(*count)++] = (struct ranked){
				doc->since ? site->since_bytes
					   : gm_site_value(site, &doc->options),
				site->record.peak_bytes, site};
	}
	qsort(ranked, *count, sizeof(*ranked), compare_ranked);
	indices = gm_zone_alloc(&doc->zone, *count + 1, sizeof(*indices));
	for (unsigned i = 0; i < *count; i++)
		indices[i] = (unsigned)(ranked[i].site - doc->sites);
	free(ranked);
	return indices;
}

const bool *gm_json_bounded_sites(const struct gm_json_bound *bound, struct gm_doc *doc)
{
	bool *kept = gm_zone_alloc(&doc->zone, doc->sites_count + 1, sizeof(*kept));
	unsigned count;
	const unsigned *ranked = gm_json_ranked_sites(doc, &count);

	for (unsigned i = 0; i < doc->sites_count; i++)
		kept[i] = json_object_get(bound->named, doc->sites[i].id) != NULL;
	for (unsigned i = 0; i < count && i < bound->most; i++)
		kept[ranked[i]] = true;
	return kept;
}
