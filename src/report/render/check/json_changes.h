/*
 * Two runs side by side as JSON, for `diff` and for `check --baseline`.
 */
#ifndef GM_REPORT_RENDER_CHECK_JSON_CHANGES_H
#define GM_REPORT_RENDER_CHECK_JSON_CHANGES_H

#include "report/gate/compare.h"
#include <jansson.h>

/* `old`, `new` (the names given here) and `sites[]`, in the order of the list. A new reference. */
json_t *gm_json_changes(const char *old_name, const char *new_name, const struct gm_change *changes,
			unsigned count);

#endif
