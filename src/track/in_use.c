/*
 * The bytes in use on a device.
 */
#include "track/in_use.h"
#include "track/levels.h"
#include "track/torch_memory.h"

#include <string.h>

static struct {
	uint64_t peak_bytes[GM_SLOTS]; /* under the tracker's lock */
	struct gm_in_use_most most[GM_RANGE_DEVICES];
	unsigned measured; /* so many devices have `most` */
} in_use;

static uint64_t level_bytes(int device, unsigned level)
{
	const struct gm_level_record *record =
		__atomic_load_n(&gm_totals.levels[gm_slot(device)][level], __ATOMIC_ACQUIRE);

	return record ? record->current_bytes : 0;
}

uint64_t gm_in_use_blocks(int device)
{
	const struct gm_torch_record *torch = gm_known_torch(device);

	if (!torch || !__atomic_load_n(&torch->counting, __ATOMIC_ACQUIRE))
		return level_bytes(device, GM_LEVEL_TORCH);
	return gm_copy_counts(torch).allocated_bytes - torch->beyond_bytes;
}

uint64_t gm_in_use_now(int device)
{
	bool blocks = gm_track_torch_seen();
	const struct gm_torch_record *torch = blocks ? gm_known_torch(device) : NULL;
	uint64_t bytes = level_bytes(device, GM_LEVEL_DRIVER);

	if (!torch)
		return bytes;
	bytes -= torch->reserved_bytes < bytes ? torch->reserved_bytes : bytes;
	return bytes + gm_in_use_blocks(device);
}

/* The host's device is negative. */
static bool is_measured(int device)
{
	return (unsigned)device < in_use.measured;
}

void gm_in_use_raise(int device)
{
	uint64_t *peak = &in_use.peak_bytes[gm_slot(device)], now = gm_in_use_now(device);

	if (now > *peak)
		*peak = now;
	if (is_measured(device) && now > in_use.most[device].bytes)
		in_use.most[device] = (struct gm_in_use_most){now, gm_track.now_ns};
}

struct gm_in_use_most gm_in_use_take_most(int device)
{
	struct gm_in_use_most most = {0}, now = {gm_in_use_now(device), gm_track.now_ns};

	if (is_measured(device)) {
		most = in_use.most[device];
		in_use.most[device] = now;
	}
	return most.bytes >= now.bytes ? most : now;
}

void gm_in_use_measure_most(void)
{
	for (; in_use.measured < GM_RANGE_DEVICES; in_use.measured++)
		in_use.most[in_use.measured] = (struct gm_in_use_most){
			gm_in_use_now((int)in_use.measured), gm_track.now_ns};
}

/* Below this nothing is to be raised. */
static uint64_t lowest_peak(int device)
{
	uint64_t peak = in_use.peak_bytes[gm_slot(device)];

	return is_measured(device) && in_use.most[device].bytes < peak ? in_use.most[device].bytes
								       : peak;
}

uint64_t gm_in_use_block_headroom(int device)
{
	uint64_t others = gm_in_use_now(device) - gm_in_use_blocks(device);
	uint64_t peak = lowest_peak(device);

	return peak > others ? peak - others : 0;
}

uint64_t gm_in_use_driver_headroom(int device)
{
	return gm_torch_state.seen ? 0 : lowest_peak(device);
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
	bytes = peak ? in_use.peak_bytes[gm_slot(device)] : gm_in_use_now(device);
	gm_track_unlock();
	return bytes;
}

void gm_track_reset_peak(int device)
{
	if (!gm_file)
		return;
	gm_track_lock();
	in_use.peak_bytes[gm_slot(device)] = gm_in_use_now(device);
	gm_invalidate_cached_counters();
	gm_track_unlock();
}
