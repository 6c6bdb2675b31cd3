/*
 * The bytes in use on a device.
 */
#include "track/in_use.h"
#include "track/levels.h"
#include "track/torch_memory.h"

#include <string.h>

static struct {
	uint64_t peak_bytes[GM_SLOTS]; /* under the tracker's lock */
} in_use;

static uint64_t level_bytes(int device, unsigned level)
{
	const struct gm_level_record *record =
		__atomic_load_n(&gm_totals.levels[gm_slot(device)][level], __ATOMIC_ACQUIRE);

	return record ? record->current_bytes : 0;
}

static inline uint64_t in_use_now(int device)
{
	bool blocks = gm_track_torch_seen();
	const struct gm_torch_record *torch = blocks ? gm_known_torch(device) : NULL;
	uint64_t bytes = level_bytes(device, GM_LEVEL_DRIVER);

	if (!torch)
		return bytes;
	bytes -= torch->reserved_bytes < bytes ? torch->reserved_bytes : bytes;
	return bytes + level_bytes(device, GM_LEVEL_TORCH);
}

void gm_in_use_raise(int device)
{
	uint64_t *peak = &in_use.peak_bytes[gm_slot(device)], now = in_use_now(device);

	if (now > *peak)
		*peak = now;
}

uint64_t gm_in_use_block_headroom(int device)
{
	uint64_t others = in_use_now(device) - level_bytes(device, GM_LEVEL_TORCH);
	uint64_t peak = in_use.peak_bytes[gm_slot(device)];

	return peak > others ? peak - others : 0;
}

uint64_t gm_in_use_driver_headroom(int device)
{
	return gm_torch_state.seen ? 0 : in_use.peak_bytes[gm_slot(device)];
}

void gm_in_use_reset(void)
{
	memset(&in_use, 0, sizeof(in_use));
}

uint64_t gm_track_in_use(int device, bool peak)
{
	uint64_t bytes;

	if (!gm_file)
		return 0;
	gm_track_lock();
	bytes = peak ? in_use.peak_bytes[gm_slot(device)] : in_use_now(device);
	gm_track_unlock();
	return bytes;
}

void gm_track_reset_peak(int device)
{
	if (!gm_file)
		return;
	gm_track_lock();
	in_use.peak_bytes[gm_slot(device)] = in_use_now(device);
	gm_invalidate_cached_counters();
	gm_track_unlock();
}
