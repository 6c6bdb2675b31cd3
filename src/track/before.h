/*
 * Memory that was allocated before the period began. It has no records: the ledger's row of each
 * device has its sum, and falls by what the driver confirmed before a free. A handle of virtual
 * memory does not tell its size, but its mappings do, so what an unmapping showed is kept for the
 * handle's release.
 */
#ifndef GM_TRACK_BEFORE_H
#define GM_TRACK_BEFORE_H

#include <stdint.h>

/*
 * Memory from before the period was freed. Its size was confirmed by the driver before the free.
 * Takes the tracker's lock, as the functions below do.
 */
void gm_track_before_freed(int device, uint64_t bytes);

/* A handle that is not known has so much memory of a device, as one of its mappings showed. */
void gm_track_before_handle(uint64_t handle, uint64_t bytes, int device);

/*
 * Returns the bytes of a handle that gm_track_before_handle told of, and its device; 0 for all
 * other handles. The driver may have given the number to a handle that is known since.
 */
uint64_t gm_track_before_handle_bytes(uint64_t handle, int *device);

/* The handle's memory has ended. */
void gm_track_before_handle_ended(uint64_t handle);

/* ---- for track/, under the lock ---- */

void gm_before_reset(void);

#endif
