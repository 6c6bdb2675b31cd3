/*
 * The allocations that were made after a mark and are still live.
 */
#ifndef GM_REPORT_HISTORY_SINCE_H
#define GM_REPORT_HISTORY_SINCE_H

#include "report/doc/doc.h"
#include "report/doc/options.h"

/*
 * Fills `since_bytes` and `since_count` of the sites for --since and --until. False, with a
 * sentence in `error`, if there is no such mark.
 */
bool gm_since_apply(struct gm_doc *doc, const struct gm_options *options, char *error,
		    size_t error_bytes);

/*
 * A gate "mark:NAME" for each mark but the first `warmup`: it fails where a site holds
 * `least_bytes` or more that were allocated after that mark and before the next. With a caching
 * `framework` its blocks count, else the memory of the driver.
 */
void gm_since_gate_marks(struct gm_doc *doc, uint64_t least_bytes, unsigned warmup, bool framework);

#endif
