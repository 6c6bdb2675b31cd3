/*
 * Values of a document as JSON, for all renderers that write JSON. Each function returns a new
 * reference; what is not known becomes null.
 */
#ifndef GM_REPORT_RENDER_JSON_JSON_VALUES_H
#define GM_REPORT_RENDER_JSON_JSON_VALUES_H

#include "report/doc/doc.h"
#include <jansson.h>

json_t *gm_json_bytes(uint64_t bytes);
json_t *gm_json_string(const char *text);
json_t *gm_json_strings(const char *const *texts, unsigned count);
json_t *gm_json_seconds(uint64_t ns);
json_t *gm_json_device(int device);
/* Returns both percentages of a level's figures, null where they are not known. */
json_t *gm_json_holes(const struct gm_fragmentation *row);
json_t *gm_json_percent(uint64_t part, uint64_t whole);
json_t *gm_json_total(const struct gm_level_record *level, uint64_t limit);
json_t *gm_json_frame(const struct gm_frame *frame);
json_t *gm_json_stack(const struct gm_stack *stack);

#endif
