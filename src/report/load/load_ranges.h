/*
 * Named ranges: the records of the file, and what their allocations have left.
 */
#ifndef GM_REPORT_LOAD_LOAD_RANGES_H
#define GM_REPORT_LOAD_LOAD_RANGES_H

#include "report/doc/doc.h"

/*
 * Fills `ranges`, once the blocks of the end of the work and their sites are final. With --at there
 * are none, because the records are those of the whole run. `device`: of others they are hidden;
 * -1: of none.
 */
void gm_load_ranges(struct gm_doc *doc, int device);

#endif
