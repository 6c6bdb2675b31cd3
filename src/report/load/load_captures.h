/*
 * Captures of streams into graphs and the private pools of PyTorch's that they share.
 */
#ifndef GM_REPORT_LOAD_CAPTURES_H
#define GM_REPORT_LOAD_CAPTURES_H

#include "report/doc/doc.h"

/* Fills `graph_pools` from the document's captures and blocks. */
void gm_load_captures(struct gm_doc *doc);

#endif
