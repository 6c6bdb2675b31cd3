/*
 * --at TIME: the document as it was at a moment of the run. From the complete history all figures
 * of allocations are exact; from the ring alone, if it reaches back to the moment, they are counted
 * back from the end, and peaks from before it are not known. What the history does not hold (pools'
 * reserves, the driver's own figures, costs of calls) is left out.
 */
#ifndef GM_REPORT_HISTORY_MOMENT_H
#define GM_REPORT_HISTORY_MOMENT_H

#include "report/doc/doc.h"
#include "report/doc/options.h"

/*
 * Turns a document whose tables, sites and events are loaded into that of `options->at_ns`, if
 * `options->at`. False after a sentence where the moment cannot be told.
 */
bool gm_moment_apply(struct gm_doc *doc, const struct gm_options *options, char *error,
		     size_t error_bytes);

/* Peaks that are not known become so for renderers, once nothing adds them up any more. */
void gm_moment_finish(struct gm_doc *doc);

/* The record of a number in the table of live allocations, at the document's moment. */
bool gm_doc_record(const struct gm_doc *doc, uint32_t number, struct gm_alloc_record *record);

#endif
