/*
 * The least memory that would suffice if the future were known: a plan that gives each block of a
 * history an address before the run begins.
 */
#ifndef GM_REPORT_WHATIF_OFFLINE_H
#define GM_REPORT_WHATIF_OFFLINE_H

#include "report/whatif/requests.h"

/*
 * Two figures over the requests, rounded to 512 bytes: `*bound` is the most that was live at a
 * time, which no plan can undercut, and the returned peak is that of a plan which places large
 * blocks first, each at the lowest address that is free as long as the block lives. UINT64_MAX if
 * there are too many blocks for it.
 */
uint64_t gm_offline_peak(const struct gm_requests *requests, uint64_t *bound);

#endif
