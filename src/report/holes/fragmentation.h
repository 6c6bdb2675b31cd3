/*
 * The memory that is reserved beyond what is used, for each device and level of a document.
 */
#ifndef GM_REPORT_HOLES_FRAGMENTATION_H
#define GM_REPORT_HOLES_FRAGMENTATION_H

#include "report/doc/doc.h"

/* Fills `fragmentation[]`, and says which sites' driver memory PyTorch divides (torch_segments). */
void gm_load_fragmentation(struct gm_doc *doc);

#endif
