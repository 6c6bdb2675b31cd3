/*
 * The device memory that calls of a MEASURED role (api/roles.def) take beside allocations.
 */
#ifndef GM_RECORDER_ROLE_COST_H
#define GM_RECORDER_ROLE_COST_H

#include "recorder/calls/roles.h"
#include "store/writer.h"
#include "track/ledger.h"

/*
 * Before and after the real call, inside the tracker: the device is read, and what the call took is
 * recorded. `cost` is the column of the call's role.
 */
void gm_begin_cost(struct gm_call *call, const struct gm_row *row,
		   const struct gm_role_cost *cost);
void gm_end_cost(struct gm_call *call, const struct gm_row *row, const struct gm_role_cost *cost,
		 int result);

/*
 * Records what calls took that readings could not be afforded for, so that a sample of the ledger
 * that follows does not show it as unexplained. Inside the tracker, of the current device.
 */
void gm_settle_costs(void);

/* Samples the ledgers of all devices in use because that is due by time. Not during a capture. */
void gm_sample_by_time(void);

/* Samples the ledgers by time outside of the tracker, after a launch that was only forwarded. */
void gm_sample_at_launch(void);

/* Samples the ledgers of the devices at a new peak that is worth it. */
void gm_sample_peaks_of_all(void);

/* After a successful allocation: samples the ledgers that are due. */
static inline void gm_sample_peaks(void)
{
	if (__builtin_expect(gm_track_ledger_by_time(gm_file->last_event_ns), 0))
		gm_sample_by_time();
	if (__builtin_expect(gm_track_ledger_may_peak(), 0))
		gm_sample_peaks_of_all();
}

#endif
