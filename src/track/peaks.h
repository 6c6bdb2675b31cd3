/*
 * Fragmentation at the peak: what PyTorch's segments, the pools and the slabs of a device held when
 * what is used of them stood at its peak. The sums are noted with the peak. The layout is not copied:
 * what was there and is there still has a live record, and what was freed since is kept when it is
 * freed, once for each peak. A new peak forgets that by its serial number alone. So a free costs one
 * comparison, and the report can lay out the moment of the peak exactly. Private to track/, under the
 * lock.
 */
#ifndef GM_TRACK_PEAKS_H
#define GM_TRACK_PEAKS_H

#include "track/state.h"

#define GM_PEAK_RUN  1024u /* records taken together */
#define GM_PEAK_RUNS 64u

/* Where the next freed is kept, how many follow it in its run, and how many runs are in use. */
struct gm_peak_room {
	struct gm_peak_block_record *next;
	uint32_t left, begun;
};

struct gm_peak {
	uint64_t serial;	    /* as in the record; 0: no peak yet */
	struct gm_peak_room room;
	struct gm_peak_room start;  /* what it is at a peak: the first run is in use once it is taken */
	struct gm_peak_record *record;
	uint32_t runs;		    /* taken */
	uint32_t first[GM_PEAK_RUNS]; /* records of the runs, used again at each peak */
};
extern struct gm_peak gm_peaks[GM_SLOTS][GM_HOLES_LEVELS] __attribute__((visibility("hidden")));

/* The level's record of a device; NULL when the file is full. */
struct gm_peak_record *gm_make_peak(int device, enum gm_holes_level level);

/* Keeps what is freed, while its record is whole. */
void gm_peak_keep(struct gm_peak *peak, enum gm_holes_level level, const struct gm_alloc_record *alloc);

void gm_peaks_reset(void);

static inline struct gm_peak *gm_peak_of(int device, enum gm_holes_level level)
{
	return &gm_peaks[gm_slot(device)][level];
}

/* `used_bytes` is the highest so far, or it again: this is the moment that counts from now on. */
static inline void gm_peak_reach(int device, enum gm_holes_level level, uint64_t used_bytes,
				 uint64_t reserved_bytes)
{
	struct gm_peak *peak = gm_peak_of(device, level);
	struct gm_peak_record *record = peak->record ? peak->record : gm_make_peak(device, level);

	if (!record)
		return;
	record->used_bytes = used_bytes;
	record->reserved_bytes = reserved_bytes;
	record->time_ns = gm_track.now_ns;
	record->lost = 0;
	record->serial = peak->serial = gm_file->serial;
	peak->room = peak->start;
}

/* The same if it is the highest. */
static inline void gm_peak_raise(int device, enum gm_holes_level level, uint64_t used_bytes,
				 uint64_t reserved_bytes)
{
	const struct gm_peak_record *record = gm_peak_of(device, level)->record;

	if (used_bytes && (!record || used_bytes >= record->used_bytes))
		gm_peak_reach(device, level, used_bytes, reserved_bytes);
}

/* Before an allocation of the level ends: a block or segment of PyTorch's, what lies in a slab. */
static inline void gm_peak_freed(int device, enum gm_holes_level level,
				 const struct gm_alloc_record *alloc)
{
	struct gm_peak *peak = gm_peak_of(device, level);

	if (alloc->serial <= peak->serial)
		gm_peak_keep(peak, level, alloc);
}

#endif
