/*
 * Figures about the recording as a whole: its time, what the recorder did itself, and what is
 * printed at exit. Any thread, without the lock. A file must be open, but for gm_track_now.
 */
#ifndef GM_TRACK_RECORDING_H
#define GM_TRACK_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the nanoseconds since time 0 of the file. Safe in signal handlers. */
uint64_t gm_track_now(void);

/* Counts a call that was let through unrecorded. Safe in signal handlers. */
void gm_track_passed_call(void);

/* Stores the number of linker namespaces that have a libcuda of their own, if it is the most so
 * far. */
void gm_track_other_libcudas(uint32_t number);

/* Adds to the time that the recorder took of the program. */
void gm_track_overhead(uint64_t ns);

/*
 * Stores the peak of the driver's allocations on the next device that had any. *next is 0 at the
 * first call. Returns false past the last device.
 */
bool gm_track_next_peak(uint32_t *next, int *device, uint64_t *peak_bytes);

/*
 * Stores the number of live allocations of all kinds on all devices and the host, and their bytes.
 */
void gm_track_live(uint64_t *allocations, uint64_t *bytes);

#endif
