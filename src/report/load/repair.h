/*
 * Figures added up from the live records.
 */
#ifndef GM_REPORT_LOAD_REPAIR_H
#define GM_REPORT_LOAD_REPAIR_H

#include "report/doc/doc.h"

/*
 * Returns the bytes that the driver must hold for the live allocations of a device, pools' reserves
 * left out.
 */
uint64_t gm_sum_physical(const struct gm_doc *doc, int device);

#endif
