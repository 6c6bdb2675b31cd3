/*
 * The name of a range as people read it.
 */
#ifndef GM_REPORT_DOC_RANGE_TITLE_H
#define GM_REPORT_DOC_RANGE_TITLE_H

#include "report/doc/doc.h"

/*
 * The name, or path of names, of a range without the numbers that PyTorch appends to the names of
 * operators: ", seq = 12" and ", op_id = 34" (getNvtxStr in torch/csrc/profiler/util.cpp), in names
 * of groups ", seq = #". Lives in the document's zone.
 */
const char *gm_range_title(struct gm_doc *doc, const char *name);

#endif
