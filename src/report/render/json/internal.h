/*
 * What the files of the JSON renderer share. Each function returns a new reference.
 */
#ifndef GM_REPORT_RENDER_JSON_INTERNAL_H
#define GM_REPORT_RENDER_JSON_INTERNAL_H

#include "report/render/json/json.h"

json_t *gm_json_strings(const char *const *texts, unsigned count);
json_t *gm_json_seconds(uint64_t ns);
json_t *gm_json_device(int device);
/* Both percentages of a level's figures, null where they are not known. */
json_t *gm_json_holes(const struct gm_fragmentation *row);
json_t *gm_json_percent(uint64_t part, uint64_t whole);
json_t *gm_json_total(const struct gm_level_record *level, uint64_t limit);

/* The parts in json_sites.c. */
json_t *gm_json_fragmentation(struct gm_doc *doc);
json_t *gm_json_retries(struct gm_doc *doc);
json_t *gm_json_ooms(struct gm_doc *doc);
void gm_json_put_sites(struct gm_json_out *out, struct gm_doc *doc);
json_t *gm_json_leaks(struct gm_doc *doc);
json_t *gm_json_errors(struct gm_doc *doc);
json_t *gm_json_phases(struct gm_doc *doc);
json_t *gm_json_categories(struct gm_doc *doc);
json_t *gm_json_findings(struct gm_doc *doc);
json_t *gm_json_gates(struct gm_doc *doc);

/* Of each site its place in the list of gm_json_sites, -1 if it is not there. In the zone. */
int *gm_json_site_numbers(struct gm_doc *doc);

/* Lists; `doc` names the sites and may be NULL where there are none. */
json_t *gm_json_finding_list(const struct gm_doc *doc, const struct gm_finding *findings,
			     unsigned count);
json_t *gm_json_gate_list(const struct gm_doc *doc, const struct gm_gate *gates, unsigned count);

#endif
