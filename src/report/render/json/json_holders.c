/*
 * The keys `holders` and `holders_taken` of the document.
 */
#include "report/render/json/internal.h"

json_t *gm_json_holders(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->holders_count; i++) {
		const struct gm_holder *holder = &doc->holders[i];

		json_array_append_new(
			list, json_pack("{s:o, s:o, s:o, s:o, s:b, s:b, s:o}", "site",
					gm_json_string(doc->sites[holder->site].id), "bytes",
					gm_json_bytes(holder->bytes), "blocks",
					gm_json_bytes(holder->blocks), "chain",
					gm_json_strings(holder->chain, holder->chain_count),
					"garbage", holder->garbage, "complete", holder->complete,
					"note", gm_json_string(holder->note)));
	}
	return list;
}

json_t *gm_json_holders_taken(struct gm_doc *doc)
{
	if (!doc->holders_when)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:o, s:b}", "when", doc->holders_when, "time_s",
			 gm_json_seconds(doc->holders_ns), "python",
			 gm_json_string(doc->holders_python), "objects",
			 gm_json_bytes(doc->holders_objects), "whole", doc->holders_whole);
}
