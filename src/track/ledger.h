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

/*
 * A call of the device may have taken memory, and no sample was made after it: the report counts
 * such calls since the latest sample.
 */
void gm_track_ledger_missed(int device);

/* The time at which a sample is due whatever happened (atomic; 0: none was made yet). */
extern uint64_t gm_ledger_next_ns __attribute__((visibility("hidden")));

/*
 * Returns whether a sample is due by time. Without the lock; `now_ns` may lie a little in the past.
 */
static inline bool gm_track_ledger_by_time(uint64_t now_ns)
{
	return now_ns >= __atomic_load_n(&gm_ledger_next_ns, __ATOMIC_RELAXED);
}

/*
 * Sets when the next sample is due by time: `cost_ns` is what the last one took. A run has some
 * sixteen of them by the time that it is 2.7 times as old, and one each ten seconds later on; they
 * take 20 ms and a hundredth of the time at most. Returns false if another thread was quicker.
 */
bool gm_track_ledger_schedule(uint64_t now_ns, uint64_t cost_ns);

/* Does as gm_track_ledger_missed, under the lock. For track/. */
void gm_ledger_missed(int device);

/* Forgets all samples when a file was opened. For track/. */
void gm_ledger_reset(void);

#endif
