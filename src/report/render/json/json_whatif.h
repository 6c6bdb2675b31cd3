/*
 * Other settings of PyTorch's allocator as JSON.
 */
#ifndef GM_REPORT_RENDER_JSON_JSON_WHATIF_H
#define GM_REPORT_RENDER_JSON_JSON_WHATIF_H

#include "report/whatif/whatif.h"
#include <jansson.h>

/*
 * The document's keys `whatif` and `whatif_run` as members of an object. `gpu` is the smallest GPU
 * that would do, NULL. The caller owns the reference.
 */
json_t *gm_json_whatif(const struct gm_doc *doc, const struct gm_whatif *whatif, const char *gpu);

#endif
