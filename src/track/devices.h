/*
 * What the tracker knows of devices that were seen (gm_track_device). Any thread, no lock; 0 or false while
 * no file is open.
 */
#ifndef GM_TRACK_DEVICES_H
#define GM_TRACK_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

/* The ordinals of all devices seen lie below this number. */
int gm_track_devices(void);

/* Copies the UUID of a device; false if the device was not seen. */
bool gm_track_device_uuid(int device, uint8_t uuid[16]);

/*
 * Bytes that the process holds on a device: all that is tracked, managed memory, code, and the first
 * context as far as its cost is known. 0 for GM_HOST.
 */
uint64_t gm_track_held_bytes(int device);

/*
 * The number of a text with the other processes on a device ("PID BYTES\n" each, below 1 KiB), for struct
 * gm_device_view. The text changes seldom and is stored once as long as it is the same. A file must be open.
 */
uint32_t gm_track_pids(const char *pids);

#endif
