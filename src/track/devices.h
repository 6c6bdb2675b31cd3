/*
 * The devices that were seen, and their records.
 */
#ifndef GM_TRACK_DEVICES_H
#define GM_TRACK_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

/* A device is in use. Name and total bytes are as CUDA reports them; `name` may be NULL. */
void gm_track_device(int device, const char *name, const uint8_t uuid[16], uint64_t total_bytes);

/* Sets the GPUMEMTRACE_CAPACITY of a device that was seen; GM_NO_BYTES: none. */
void gm_track_capacity(int device, uint64_t bytes);

/* Records what was in use on the device before its first context, by NVML. */
void gm_track_used_before(int device, uint64_t bytes);

/* The functions below need no lock. While no file is open they return 0 or false. */

/* Returns a number above the ordinals of all devices that were seen. */
int gm_track_devices(void);

/* Copies the UUID of a device; returns false if the device was not seen. */
bool gm_track_device_uuid(int device, uint8_t uuid[16]);

/*
 * Returns the bytes that the process holds on a device: all that is tracked, managed memory, code,
 * and the first context as far as its cost is known. 0 for GM_HOST.
 */
uint64_t gm_track_held_bytes(int device);

/*
 * Returns the string of a text with the other processes on a device ("PID BYTES\n" each, below 1
 * KiB), for struct gm_device_view. The text rarely changes and is stored once as long as it is the
 * same. A file must be open.
 */
uint32_t gm_track_pids(const char *pids);

#endif
