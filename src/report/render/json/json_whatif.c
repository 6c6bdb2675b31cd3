/*
 * The document's keys `whatif` (contract.md, section 4) and `whatif_run`.
 */
#include "report/render/json/json_whatif.h"
#include "report/render/json/internal.h"

static json_t *fits(enum gm_whatif_fits fits)
{
	return fits == GM_FITS_UNKNOWN ? json_null() : json_boolean(fits == GM_FITS);
}

static json_t *row_object(const struct gm_doc *doc, const struct gm_whatif_row *row)
{
	json_t *object = json_object();

	json_object_set_new(object, "conf", gm_json_string(row->conf));
	json_object_set_new(object, "allocated_peak_bytes",
			    gm_json_bytes(row->allocated_peak_bytes));
	json_object_set_new(object, "reserved_peak_bytes", gm_json_bytes(row->reserved_peak_bytes));
	json_object_set_new(object, "reserved_peak_low_bytes",
			    gm_json_bytes(row->reserved_low_bytes));
	json_object_set_new(object, "reserved_peak_high_bytes",
			    gm_json_bytes(row->reserved_high_bytes));
	json_object_set_new(object, "segments", gm_json_bytes(row->segments));
	json_object_set_new(object, "retries", gm_json_bytes(row->retries));
	json_object_set_new(object, "ooms", gm_json_bytes(row->ooms));
	json_object_set_new(object, "oom_at_s", gm_json_seconds(row->oom_ns));
	json_object_set_new(object, "oom_site",
			    row->oom_site == GM_NO_SITE
				    ? json_null()
				    : gm_json_string(doc->sites[row->oom_site].id));
	json_object_set_new(object, "fits", fits(row->fits));
	json_object_set_new(object, "exact", json_boolean(row->exact));
	json_object_set_new(object, "why", gm_json_string(row->why));
	return object;
}

static json_t *run_object(const struct gm_whatif *whatif, const char *gpu)
{
	json_t *object = json_object();

	json_object_set_new(object, "device", json_integer(whatif->device));
	json_object_set_new(object, "torch",
			    whatif->version ? json_sprintf("%u.%u", whatif->version / 100,
							   whatif->version % 100)
					    : json_null());
	json_object_set_new(object, "conf", gm_json_string(whatif->recorded_conf));
	json_object_set_new(object, "events", gm_json_bytes(whatif->events));
	json_object_set_new(object, "target_batch",
			    whatif->target_batch > 0
				    ? json_integer((json_int_t)whatif->target_batch)
				    : json_null());
	json_object_set_new(object, "complete", json_boolean(whatif->complete));
	json_object_set_new(object, "traced", json_boolean(whatif->traced));
	json_object_set_new(object, "reproduced", json_boolean(whatif->reproduced));
	json_object_set_new(object, "misplaced_blocks", gm_json_bytes(whatif->misplaced));
	json_object_set_new(object, "reserved_peak_bytes",
			    gm_json_bytes(whatif->recorded_reserved_peak_bytes));
	json_object_set_new(object, "lower_bound_bytes", gm_json_bytes(whatif->lower_bound_bytes));
	json_object_set_new(object, "plan_peak_bytes", gm_json_bytes(whatif->plan_peak_bytes));
	json_object_set_new(object, "best", gm_json_string(whatif->rows[whatif->best].conf));
	json_object_set_new(object, "smallest_gpu", gm_json_string(gpu));
	json_object_set_new(object, "notes", gm_json_strings(whatif->notes, whatif->notes_count));
	return object;
}

json_t *gm_json_whatif(const struct gm_doc *doc, const struct gm_whatif *whatif, const char *gpu)
{
	json_t *object = json_object(), *rows = json_array();

	for (unsigned i = 0; i < whatif->rows_count; i++)
		json_array_append_new(rows, row_object(doc, &whatif->rows[i]));
	json_object_set_new(object, "whatif", rows);
	json_object_set_new(object, "whatif_run", run_object(whatif, gpu));
	return object;
}
