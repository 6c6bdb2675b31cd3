/*
 * The document's key `ranges` (contract.md, section 4).
 */
#include "report/doc/enum_names.h"
#include "report/render/json/internal.h"

static json_t *number_or_null(uint32_t index)
{
	return index == GM_NONE ? json_null() : json_integer(index);
}

static json_t *sites(const struct gm_doc *doc, const struct gm_range_site *list, unsigned count)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(array, json_pack("{s:o, s:o, s:o}", "site",
						       gm_json_site_id(doc, list[i].site), "bytes",
						       gm_json_bytes(list[i].bytes), "count",
						       gm_json_bytes(list[i].count)));
	return array;
}

static json_t *instance(const struct gm_named_range *range, const char *name,
			const struct gm_range_instance *of)
{
	if (!range->record.measured)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "name", gm_json_string(name),
			 "start_s", gm_json_seconds(of->start_ns), "end_s",
			 gm_json_seconds(of->end_ns), "peak_at_s", gm_json_seconds(of->peak_ns),
			 "start_bytes", gm_json_bytes(of->start_bytes), "peak_bytes",
			 gm_json_bytes(of->peak_bytes), "retained_bytes",
			 (json_int_t)of->retained_bytes, "thread",
			 of->thread ? json_integer(of->thread) : json_null());
}

static json_t *range(const struct gm_doc *doc, const struct gm_named_range *range)
{
	const struct gm_range_record *record = &range->record;
	json_t *object = json_pack(
		"{s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "name", gm_json_string(range->name), "path",
		gm_json_string(range->path), "domain", gm_json_string(range->domain), "source",
		gm_range_source_name(record->source), "device", gm_json_device(record->device),
		"parent", number_or_null(record->parent), "group", number_or_null(record->group));
	json_t *most = instance(range, range->most_retained_name, &record->most_retained);

	json_object_set_new(object, "names", json_integer(record->names));
	json_object_set_new(object, "names_complete", json_boolean(!record->overflowed));
	json_object_set_new(object, "opened", gm_json_bytes(record->opened));
	json_object_set_new(object, "closed", gm_json_bytes(record->closed));
	json_object_set_new(
		object, "lowest_peak_bytes",
		gm_json_bytes(record->measured ? record->lowest_peak_bytes : GM_NO_BYTES));
	json_object_set_new(object, "median_peak_bytes", gm_json_bytes(range->median_peak_bytes));
	json_object_set_new(
		object, "peak_bytes",
		gm_json_bytes(record->measured ? record->highest.peak_bytes : GM_NO_BYTES));
	json_object_set_new(object, "most_added_bytes", gm_json_bytes(record->most_added_bytes));
	json_object_set_new(object, "retained_bytes", json_integer(record->retained_bytes));
	json_object_set_new(object, "median_retained_bytes",
			    json_integer(range->median_retained_bytes));
	json_object_set_new(object, "work_bytes", gm_json_bytes(range->work_bytes));
	json_object_set_new(object, "work_count", gm_json_bytes(range->work_count));
	json_object_set_new(object, "sites", sites(doc, range->sites, range->sites_count));
	json_object_set_new(object, "highest",
			    instance(range, range->highest_name, &record->highest));
	if (json_is_object(most))
		json_object_set_new(most, "sites",
				    sites(doc, range->retained_sites, range->retained_sites_count));
	json_object_set_new(object, "most_retained", most);
	return object;
}

json_t *gm_json_ranges(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->ranges_count; i++)
		json_array_append_new(list, range(doc, &doc->ranges[i]));
	return list;
}
