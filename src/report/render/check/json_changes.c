/*
 * The list of changes as JSON, see json_changes.h. Every measure has a key for each side.
 */
#include "report/render/check/json_changes.h"
#include "report/doc/enum_names.h"
#include "report/render/json/json_values.h"
#include <stdio.h>

static void set_side(json_t *object, const char *side, const uint64_t values[GM_MEASURES])
{
	static const char *const names[GM_MEASURES] = {
		[GM_MEASURE_LIVE] = "live_bytes",
		[GM_MEASURE_PEAK] = "peak_bytes",
		[GM_MEASURE_AT_PEAK] = "bytes_at_peak",
		[GM_MEASURE_ALLOCATED] = "allocated_bytes",
		[GM_MEASURE_ALLOCATIONS] = "allocations",
		[GM_MEASURE_TIME] = "time_s",
	};

	for (unsigned m = 0; m < GM_MEASURES; m++) {
		char key[32];

		snprintf(key, sizeof(key), "%s_%s", side, names[m]);
		json_object_set_new(object, key,
				    m == GM_MEASURE_TIME ? gm_json_seconds(values[m])
							 : gm_json_bytes(values[m]));
	}
}

static json_t *change_object(const struct gm_change *change)
{
	const struct gm_site *site = change->new_site ? change->new_site : change->old_site;
	json_t *object = json_pack(
		"{s:s, s:o, s:o, s:s, s:s}", "change", gm_change_name(change), "old_site",
		gm_json_string(change->old_site ? change->old_site->id : NULL), "new_site",
		gm_json_string(change->new_site ? change->new_site->id : NULL), "kind",
		gm_kind_name(site->record.kind), "level", gm_level_name(site->record.level));

	set_side(object, "old", change->before);
	set_side(object, "new", change->after);
	json_object_set_new(object, "stack", gm_json_stack(site->stack));
	return object;
}

json_t *gm_json_changes(const char *old_name, const char *new_name, const struct gm_change *changes,
			unsigned count)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(list, change_object(&changes[i]));
	return json_pack("{s:o, s:o, s:o}", "old", gm_json_string(old_name), "new",
			 gm_json_string(new_name), "sites", list);
}
