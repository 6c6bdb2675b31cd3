/*
 * Holders that the shim had looked for (GPUMEMTRACE_HOLDERS): files OUT.holders<n> beside the
 * output file.
 */
#ifndef GM_REPORT_HOLDERS_STORED_HOLDERS_H
#define GM_REPORT_HOLDERS_STORED_HOLDERS_H

#include "report/doc/doc.h"
#include <stdbool.h>

/* Writes the document's holders to `path`, whole or not at all; 0 or -errno. */
int gm_store_holders(struct gm_doc *doc, const char *path);

/*
 * Fills the document's holders from the latest file, if there is one. Waits up to ten seconds for
 * one that is being made. A file that cannot be read is a warning of the document.
 */
void gm_load_holders(struct gm_doc *doc);

#endif
