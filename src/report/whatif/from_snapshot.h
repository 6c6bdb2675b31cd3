/*
 * The requests of one device from a snapshot of PyTorch. What was there before the first event
 * follows from the snapshot's state, by going back.
 */
#ifndef GM_REPORT_WHATIF_FROM_SNAPSHOT_H
#define GM_REPORT_WHATIF_FROM_SNAPSHOT_H

#include "report/support/memory.h"
#include "report/whatif/requests.h"

/*
 * Fills `requests`, which is empty, from the snapshot at `path`; texts live in the zone. `device`
 * is the one to take, -1 for the one with most events. Events after `until_ns` are left out. False
 * if there is no history.
 */
bool gm_requests_from_snapshot(struct gm_requests *requests, struct gm_zone *zone, const char *path,
			       int device, uint64_t until_ns);

#endif
