/*
 * The document's key `plan` (contract.md, section 4); docs/plan.md has what is there beyond it.
 */
#include "report/render/json/json_plan.h"
#include "report/render/json/internal.h"
#include "report/support/format.h"
#include <math.h>

static json_t *rows(const struct gm_plan *plan)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < plan->parts_count; i++) {
		const struct gm_plan_part *part = &plan->parts[i];
		double bytes = gm_part_bytes(plan, part);

		json_array_append_new(list,
				      json_pack("{s:s, s:o, s:s}", "what", part->what, "bytes",
						gm_json_bytes(gm_whole_bytes(bytes)), "rule",
						part->rule));
	}
	return list;
}

static json_t *fits(const struct gm_plan *plan)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < plan->fits_count; i++) {
		const struct gm_plan_fit *fit = &plan->fits[i];

		json_array_append_new(
			list, json_pack("{s:s, s:o, s:b, s:f, s:o}", "gpu", fit->gpu, "total_bytes",
					gm_json_bytes(fit->total_bytes), "fits", fit->fits,
					"margin_percent", fit->margin_percent, "max_batch",
					gm_json_bytes(fit->max_batch)));
	}
	return list;
}

static json_t *variants(const struct gm_plan *plan)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < plan->variants_count; i++) {
		const struct gm_plan_variant *variant = &plan->variants[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:o, s:o, s:s}", "what", variant->what,
						"total_bytes", gm_json_bytes(variant->total_bytes),
						"max_batch", gm_json_bytes(variant->max_batch),
						"rule", variant->rule));
	}
	return list;
}

/* The key/value cache of a request; how many fit is the plan's batch. */
static json_t *kv_cache(const struct gm_plan *plan)
{
	if (!plan->kv_tokens)
		return json_null();
	return json_pack("{s:o, s:i, s:o}", "token_bytes", gm_json_bytes(plan->kv_token_bytes),
			 "tokens", (int)plan->kv_tokens, "request_bytes",
			 gm_json_bytes(plan->kv_token_bytes * plan->kv_tokens));
}

json_t *gm_json_plan(const struct gm_plan *plan)
{
	json_t *parameters =
		plan->parameters > 0 ? json_integer(llround(plan->parameters)) : json_null();
	json_t *object =
		json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "parameters", parameters,
			  "fixed_bytes", gm_json_bytes(plan->fixed_bytes), "per_batch_bytes",
			  gm_json_bytes(plan->per_batch_bytes), "total_bytes",
			  gm_json_bytes(plan->total_bytes), "rows", rows(plan), "fits", fits(plan),
			  "max_batch", gm_json_bytes(plan->max_batch), "accumulation",
			  gm_json_bytes(plan->accumulation));

	json_object_set_new(object, "measured", json_boolean(plan->measured));
	json_object_set_new(object, "batch", gm_json_bytes(plan->batch));
	json_object_set_new(object, "target_batch", gm_json_bytes(plan->target_batch));
	json_object_set_new(object, "capacity_bytes", gm_json_bytes(plan->limit_bytes));
	json_object_set_new(object, "safe_batch", gm_json_bytes(plan->safe_batch));
	json_object_set_new(object, "safety_percent", json_integer(plan->margin_percent));
	json_object_set_new(object, "fragmentation_percent",
			    plan->measured ? json_real(100 * plan->fragmentation) : json_null());
	json_object_set_new(object, "kv_cache", kv_cache(plan));
	json_object_set_new(object, "variants", variants(plan));
	json_object_set_new(object, "notes", gm_json_strings(plan->notes, plan->notes_count));
	json_object_set_new(object, "estimate",
			    plan->estimate ? gm_json_plan(plan->estimate) : json_null());
	return object;
}
