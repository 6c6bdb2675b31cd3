/*
 * Fragmentation at the peak: records of peaks and of what was freed since them. See peaks.h.
 */
#include "track/peaks.h"

#include <string.h>

struct gm_peak gm_peaks[GM_SLOTS][GM_HOLES_LEVELS];

void gm_peaks_reset(void)
{
	memset(gm_peaks, 0, sizeof(gm_peaks));
}

struct gm_peak_record *gm_make_peak(int device, enum gm_holes_level level)
{
	struct gm_peak_record *record;
	uint32_t number;

	if (device < 0)
		return NULL;
	record = gm_store_append(GM_TABLE_PEAKS, 1, &number);
	if (!record)
		return NULL;
	record->device = (int16_t)device;
	record->level = (uint8_t)level;
	gm_store_publish(GM_TABLE_PEAKS);
	gm_peak_of(device, level)->record = record;
	return record;
}

/* A run's records lie in one chunk. False when the runs, or the file, are full. */
static __attribute__((noinline, cold)) bool begin_run(struct gm_peak *peak)
{
	uint32_t run = peak->room.begun;

	if (peak->record->lost || run == GM_PEAK_RUNS)
		return false;
	if (run == peak->runs) {
		if (!gm_store_append(GM_TABLE_PEAK_BLOCKS, GM_PEAK_RUN, &peak->first[run]))
			return false;
		gm_store_publish(GM_TABLE_PEAK_BLOCKS);
		peak->runs++;
	}
	peak->room.next = gm_store_record(GM_TABLE_PEAK_BLOCKS, peak->first[run]);
	peak->room.left = GM_PEAK_RUN;
	peak->room.begun++;
	if (!run)
		peak->start = peak->room;
	return true;
}

/* The peak's number is taken off first and put on last: a record of a peak is whole. */
GM_HOT_CODE void gm_peak_keep(struct gm_peak *peak, enum gm_holes_level level, const struct gm_alloc_record *alloc)
{
	struct gm_peak_block_record *record;

	if (__builtin_expect(!peak->room.left, 0) && !begin_run(peak)) {
		peak->record->lost = 1;
		return;
	}
	peak->room.left--;
	record = peak->room.next++;
	__atomic_store_n(&record->peak_serial, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	record->address = alloc->key;
	record->bytes = alloc->bytes;
	record->site = alloc->site;
	record->device = alloc->device;
	record->space = alloc->space;
	record->level = (uint8_t)level;
	__atomic_store_n(&record->peak_serial, peak->serial, __ATOMIC_RELEASE);
}
