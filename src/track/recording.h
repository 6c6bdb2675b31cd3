/*
 * Figures about the recording as a whole: what the recorder did itself, and what is printed at exit. Any
 * thread, no lock. A file must be open.
 */
#ifndef GM_TRACK_RECORDING_H
#define GM_TRACK_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

/* A call was let through unrecorded. Async-signal-safe. */
void gm_track_passed_call(void);

/* The recorder took so much of the program's time. */
void gm_track_overhead(uint64_t ns);

/*
 * The peak of the driver's allocations on the next device that had any; *next is 0 at the first call. False
 * past the last device.
 */
bool gm_track_next_peak(uint32_t *next, int *device, uint64_t *peak_bytes);

/* Live allocations of all kinds on all devices and the host, and their bytes. */
void gm_track_live(uint64_t *allocations, uint64_t *bytes);

#endif
