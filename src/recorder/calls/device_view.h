/*
 * A device as the driver and NVML see it at one moment, for OOMs and for the ledger. Any thread; no
 * lock of the tracker's may be held.
 */
#ifndef GM_RECORDER_DEVICE_VIEW_H
#define GM_RECORDER_DEVICE_VIEW_H

#include "track/ledger.h"

/* The reason for a sample of the ledger: `reason` of gm_ledger_record. */
enum gm_sample {
	GM_SAMPLE_CONTEXT,
	GM_SAMPLE_PEAK,
	GM_SAMPLE_OOM,
	GM_SAMPLE_MARK,
	GM_SAMPLE_TIME,
	GM_SAMPLE_TAKEN,
	GM_SAMPLE_PERIOD /* a period of recording began (sleep.h) */
};

/*
 * Fills *view from the driver, if the calling thread's context is on the device, and with `nvml`
 * from NVML, which takes some milliseconds to list processes. Figures that are not known are
 * GM_NO_BYTES; for GM_HOST all are.
 */
void gm_view_device(int device, bool nvml, struct gm_device_view *view);

/* Samples the ledger of a device, if a sample for this reason is due. */
void gm_sample_ledger(int device, enum gm_sample reason);

/* Samples the ledgers of all devices in use. */
void gm_sample_ledgers(enum gm_sample reason);

#endif
