/*
 * Fragmentation at the peak: the records of peaks and of what was freed since.
 */
#include "track/peaks.h"

#include <string.h>

struct gm_peak gm_peaks[GM_SLOTS][GM_HOLES_LEVELS];

void gm_peaks_reset(void)
{
	memset(gm_peaks, 0, sizeof(gm_peaks));
}

struct gm_peak_record *gm_add_peak(int device, enum gm_holes_level level)
{
	struct gm_peak_record *record;
	uint32_t index;

	if (device < 0)
		return NULL;
	record = gm_store_append(GM_TABLE_PEAKS, 1, &index);
	if (!record)
		return NULL;
	record->device = (int16_t)device;
	record->level = (uint8_t)level;
	gm_store_publish(GM_TABLE_PEAKS);
	gm_peak_of(device, level)->record = record;
	return record;
}

/*
 * Moves the cursor to the start of the next run, whose records lie in one chunk. Returns false if
 * there are no more runs or the file is full.
 */
static GM_COLD bool begin_run(struct gm_peak *peak)
{
	uint32_t run = peak->cursor.begun;

	if (peak->record->lost || run == GM_PEAK_RUNS)
		return false;
	if (run == peak->runs) {
		if (!gm_store_append(GM_TABLE_PEAK_BLOCKS, GM_PEAK_RUN, &peak->first[run]))
			return false;
		gm_store_publish(GM_TABLE_PEAK_BLOCKS);
		peak->runs++;
	}
	peak->cursor.next = gm_store_record(GM_TABLE_PEAK_BLOCKS, peak->first[run]);
	peak->cursor.left = GM_PEAK_RUN;
	peak->cursor.begun++;
	if (!run)
		peak->start = peak->cursor;
	return true;
}

/* A record belongs to no peak while it is being filled: its peak's serial number is stored last. */
GM_HOT_CODE void gm_peak_keep(struct gm_peak *peak, enum gm_holes_level level,
			      const struct gm_alloc_record *alloc)
{
	struct gm_peak_block_record *record;

	if (__builtin_expect(!peak->cursor.left, 0) && !begin_run(peak)) {
		peak->record->lost = 1;
		return;
	}
	peak->cursor.left--;
	record = peak->cursor.next++;
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
