/*
 * Documents whose lists `--top N` bounds (contract.md, section 4).
 */
#ifndef GM_REPORT_RENDER_JSON_JSON_BOUND_H
#define GM_REPORT_RENDER_JSON_JSON_BOUND_H

#include "report/doc/doc.h"
#include <jansson.h>

struct gm_json_bound {
	unsigned most;
	json_t *named; /* an object whose keys are the ids of sites that the document's keys name */
};

/*
 * Bounds the lists in the value of a key, at any depth, and adds the sites that are named in it to
 * `named`. Rows of devices, levels and gates, stacks and a plan's lists stay whole. Points of a
 * timeline are merged.
 */
void gm_json_bound(const struct gm_json_bound *bound, const char *key, json_t *value);

/*
 * Returns the indices of the sites that lists have: by what `--sort` names (live bytes) the highest
 * first, then by their peak. In the document's zone.
 */
const unsigned *gm_json_ranked_sites(struct gm_doc *doc, unsigned *count);

/*
 * Returns for each site of the document whether it is among the first `most` by
 * gm_json_ranked_sites, or named. In the document's zone.
 */
const bool *gm_json_bounded_sites(const struct gm_json_bound *bound, struct gm_doc *doc);

#endif
