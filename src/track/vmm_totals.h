/*
 * The totals of each device's virtual memory: handles, reserved addresses and mappings
 * (account/vmm_record.h has the rules). For track/, under the lock.
 */
#ifndef GM_TRACK_VMM_TOTALS_H
#define GM_TRACK_VMM_TOTALS_H

#include "store/layout.h"

/* Count a handle, a reservation or a mapping that came or went. */
void gm_vmm_count(const struct gm_alloc_record *alloc);
void gm_vmm_uncount(const struct gm_alloc_record *alloc);

#endif
