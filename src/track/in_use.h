/*
 * The bytes in use on a device, for programs that ask (include/gpumemtrace.h): those of the
 * driver's level, but of what PyTorch reserved only the blocks that it handed out; and their peak
 * since a reset.
 *
 * Between a segment's allocation and its first block the figure is too high by the rounding of the
 * segment: the block that follows at once is of about its size.
 */
#ifndef GM_TRACK_IN_USE_H
#define GM_TRACK_IN_USE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns the bytes in use on a device (GM_HOST: pinned memory) right now, or their peak since the
 * last gm_track_reset_peak. Any thread.
 */
uint64_t gm_track_in_use(int device, bool peak);
void gm_track_reset_peak(int device);

/* ---- for track/, under the lock ---- */

void gm_in_use_reset(void);

/* Returns the bytes in use on a device right now. */
uint64_t gm_in_use_now(int device);

/*
 * Returns the bytes of PyTorch's blocks on a device, whose level may be older than their counts
 * (struct gm_torch_record, `counting`).
 */
uint64_t gm_in_use_blocks(int device);

/*
 * The most that was in use on a device in a stretch of time, and when. Stretches are measured from
 * gm_in_use_measure_most on, which the first range of a program calls, on the first
 * GM_RANGE_DEVICES devices; gm_in_use_take_most ends one and begins the next. Cached counters are
 * invalid then.
 */
struct gm_in_use_most {
	uint64_t bytes, time_ns;
};
void gm_in_use_measure_most(void);
struct gm_in_use_most gm_in_use_take_most(int device);

/* Raises the peak after an allocation. */
void gm_in_use_raise(int device);

/*
 * Return the bytes of PyTorch's blocks at which the peak would be reached as long as nothing but
 * blocks changes; and the bytes of the driver's level, 0 if there are blocks.
 */
uint64_t gm_in_use_block_headroom(int device);
uint64_t gm_in_use_driver_headroom(int device);

#endif
