/*
 * Sites whose stacks read alike are one site.
 */
#ifndef GM_REPORT_LOAD_MERGE_SITES_H
#define GM_REPORT_LOAD_MERGE_SITES_H

#include "report/doc/doc.h"

/*
 * Makes one site of those whose stacks read alike (merge_sites.c). The others keep their place,
 * empty, with the identifier of the first; what refers to sites refers to the first.
 */
void gm_merge_sites(struct gm_doc *doc);

#endif
