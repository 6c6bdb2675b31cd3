/*
 * From an output file to a document.
 */
#ifndef GM_REPORT_LOAD_LOAD_H
#define GM_REPORT_LOAD_LOAD_H

#include "report/doc/doc.h"

/*
 * Fills the document with what its reader and its history hold: process, tables, sites, live
 * allocations, errors and out-of-memory events, made consistent where the file was cut in the
 * middle of an update. Stacks are symbolized by `doc->symbols`.
 */
void gm_load(struct gm_doc *doc);

#endif
