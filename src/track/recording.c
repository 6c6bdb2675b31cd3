/*
 * Figures about the recording as a whole.
 */
#include "track/recording.h"
#include "store/writer.h"
#include "track/clock.h"

uint64_t gm_track_now(void)
{
	return gm_file ? gm_monotonic_ns() - gm_file->started_monotonic_ns : 0;
}

void gm_track_passed_call(void)
{
	__atomic_fetch_add(&gm_file->passed_calls, 1, __ATOMIC_RELAXED);
}

void gm_track_other_libcudas(uint32_t number)
{
	if (number > gm_file->other_libcudas)
		gm_file->other_libcudas = number;
}

void gm_track_overhead(uint64_t ns)
{
	__atomic_fetch_add(&gm_file->overhead_ns, ns, __ATOMIC_RELAXED);
}

bool gm_track_next_peak(uint32_t *next, int *device, uint64_t *peak_bytes)
{
	uint32_t count = gm_file->tables[GM_TABLE_LEVELS].count;

	while (*next < count) {
		const struct gm_level_record *level = gm_store_record(GM_TABLE_LEVELS, (*next)++);

		if (level->level != GM_LEVEL_DRIVER || level->device < 0)
			continue;
		*device = level->device;
		*peak_bytes = level->peak_bytes;
		return true;
	}
	return false;
}

void gm_track_live(uint64_t *allocations, uint64_t *bytes)
{
	uint32_t i, count = gm_file->tables[GM_TABLE_USAGE].count;

	*allocations = *bytes = 0;
	for (i = 0; i < count; i++) {
		const struct gm_usage_record *usage = gm_store_record(GM_TABLE_USAGE, i);

		*allocations += usage->current_count;
		*bytes += usage->current_bytes;
	}
}
