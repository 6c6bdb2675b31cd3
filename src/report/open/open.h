/*
 * From a path to a judged document: opens the file, loads it, classifies and judges it, and applies
 * the options --at, --since, --until, --device, --kind, --level and --suppressions.
 */
#ifndef GM_REPORT_OPEN_OPEN_H
#define GM_REPORT_OPEN_OPEN_H

#include "report/doc/doc.h"
#include "report/doc/options.h"

/*
 * Returns NULL when nothing in the file can be read; `error` then holds a sentence. The caller
 * closes the document.
 */
struct gm_doc *gm_doc_open(const char *path, const struct gm_options *options, char *error,
			   size_t error_bytes);

/* Frees the document and all that points into it; NULL is allowed. */
void gm_doc_close(struct gm_doc *doc);

#endif
