/*
 * The ledger: what the driver says this process uses on a device, beside what was tracked at that
 * moment.
 */
#ifndef GM_TRACK_LEDGER_H
#define GM_TRACK_LEDGER_H

#include "track/event.h"

/*
 * Records a sample: `view` was queried just now, and `physical_bytes` were tracked before. Returns
 * false, and records nothing, if another thread has changed them since. `reason`: see layout.h.
 */
bool gm_track_ledger(int device, unsigned reason, uint64_t physical_bytes,
		     const struct gm_device_view *view);

/* Returns whether there is a sample of the device. Without the lock. */
bool gm_track_ledger_sampled(int device);

/* Returns whether a sample for this reason is worth its time now. Without the lock. */
bool gm_track_ledger_due(int device, unsigned reason);

/*
 * Returns the first device from `device` on whose memory stands at a peak that is worth a sample;
 * -1 if there is none. Without the lock.
 */
int gm_track_ledger_peak(int device);

/* Forgets all samples when a file was opened. For track/. */
void gm_ledger_reset(void);

#endif
