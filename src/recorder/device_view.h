/*
 * A device as the driver and NVML see it at one moment: for OOMs and for the ledger.
 */
#ifndef GM_RECORDER_VIEW_H
#define GM_RECORDER_VIEW_H

#include "track/torch.h"

struct gm_call;

/* Why the ledger is sampled: `reason` of gm_ledger_record. */
enum gm_sample { GM_SAMPLE_CONTEXT, GM_SAMPLE_PEAK, GM_SAMPLE_OOM, GM_SAMPLE_MARK };

/*
 * Asks the driver about a device, and NVML (`nvml`: it takes some milliseconds to list processes);
 * what cannot be told is GM_NO_BYTES. The driver is asked only where the calling thread's context
 * is on that device. GM_HOST: nothing is asked. Holds no lock of the tracker's.
 */
void gm_view_device(int device, bool nvml, struct gm_device_view *view);

/* One sample of the ledger of a device; many of one reason are made only now and then. */
void gm_sample_ledger(int device, enum gm_sample reason);

/* The same of all devices in use. */
void gm_sample_ledgers(enum gm_sample reason);

/* An allocation call failed for want of memory: asks what there was and tells the tracker. */
void gm_record_oom(const struct gm_call *call, struct gm_event *event);

/* After a context came: a first sample of its device. */
void gm_sample_context(int device);

/* After a successful allocation: one of each device that is at a new peak worth it, from `device` on. */
void gm_sample_peaks_from(int device);

static inline void gm_sample_peaks(void)
{
	int device = gm_track_ledger_peak(0);

	if (__builtin_expect(device >= 0, 0))
		gm_sample_peaks_from(device);
}

#endif
