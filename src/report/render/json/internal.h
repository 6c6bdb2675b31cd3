/*
 * Functions that the files of the JSON renderer share. Each function returns a new reference.
 */
#ifndef GM_REPORT_RENDER_JSON_INTERNAL_H
#define GM_REPORT_RENDER_JSON_INTERNAL_H

#include "report/render/json/json_out.h"
#include "report/render/json/json_values.h"

/* The parts in json_sites.c, json_ooms.c, json_ranges.c and json_holders.c. */
json_t *gm_json_fragmentation(struct gm_doc *doc);
json_t *gm_json_retries(struct gm_doc *doc);
json_t *gm_json_ooms(struct gm_doc *doc);
void gm_json_put_sites(struct gm_json_out *out, struct gm_doc *doc);
json_t *gm_json_leaks(struct gm_doc *doc);
json_t *gm_json_errors(struct gm_doc *doc);
json_t *gm_json_failures(struct gm_doc *doc);
json_t *gm_json_phases(struct gm_doc *doc);
json_t *gm_json_categories(struct gm_doc *doc);
json_t *gm_json_findings(struct gm_doc *doc);
json_t *gm_json_gates(struct gm_doc *doc);
json_t *gm_json_ranges(struct gm_doc *doc);
json_t *gm_json_holders(struct gm_doc *doc);
json_t *gm_json_holders_taken(struct gm_doc *doc);

/* The `id` of a site; null for GM_NO_SITE, and without a document. */
json_t *gm_json_site_id(const struct gm_doc *doc, uint32_t site);

/* Lists; `doc` names the sites and may be NULL where there are none. */
json_t *gm_json_finding_list(const struct gm_doc *doc, const struct gm_finding *findings,
			     unsigned count);
json_t *gm_json_gate_list(const struct gm_doc *doc, const struct gm_gate *gates, unsigned count);

#endif
