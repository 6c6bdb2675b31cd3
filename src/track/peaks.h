/*
 * Fragmentation at the peak: what PyTorch's segments, the pools and the slabs of a device held at
 * the moment when what was used of them was highest. The sums are recorded with the peak. The
 * layout is not copied: an allocation that was live then and still is has its live record, and one
 * that was freed since is kept when it is freed, once for each peak. A new peak discards what was
 * kept by its serial number alone. So a free costs one comparison, and the report can lay out the
 * moment of the peak exactly. For track/, under the lock.
 */
#ifndef GM_TRACK_PEAKS_H
#define GM_TRACK_PEAKS_H

#include "account/counters.h"
#include "track/state.h"

#define GM_PEAK_RUN  1024u /* records are appended in runs of so many */
#define GM_PEAK_RUNS 64u

/* The place at which the next allocation that is freed will be kept. */
struct gm_peak_cursor {
	struct gm_peak_block_record *next;
	uint32_t left;	/* records that follow in the run, `next` included */
	uint32_t begun; /* runs in use */
};

struct gm_peak {
	uint64_t serial; /* as in the record; 0: there was no peak yet */
	struct gm_peak_cursor cursor;
	struct gm_peak_cursor start; /* value of the cursor at a peak: the start of the first run */
	struct gm_peak_record *record;
	uint32_t runs;		      /* appended */
	uint32_t first[GM_PEAK_RUNS]; /* index of each run's first record; runs are used again */
};
extern struct gm_peak gm_peaks[GM_SLOTS][GM_HOLES_LEVELS] __attribute__((visibility("hidden")));

void gm_peaks_reset(void);

/* Makes the record of a device's level; NULL if the file is full. */
struct gm_peak_record *gm_add_peak(int device, enum gm_holes_level level);

/* Keeps an allocation that is about to be freed. Its record is still whole. */
void gm_peak_keep(struct gm_peak *peak, enum gm_holes_level level,
		  const struct gm_alloc_record *alloc);

static inline struct gm_peak *gm_peak_of(int device, enum gm_holes_level level)
{
	return &gm_peaks[gm_slot(device)][level];
}

/* Records the present moment as the peak: `used_bytes` is at least as high as it ever was. */
static inline void gm_peak_set(int device, enum gm_holes_level level, uint64_t used_bytes,
			       uint64_t reserved_bytes)
{
	struct gm_peak *peak = gm_peak_of(device, level);
	struct gm_peak_record *record = peak->record ? peak->record : gm_add_peak(device, level);

	if (!record)
		return;
	record->used_bytes = used_bytes;
	record->reserved_bytes = reserved_bytes;
	record->time_ns = gm_track.now_ns;
	record->lost = 0;
	record->serial = peak->serial = gm_file->serial;
	peak->cursor = peak->start;
}

/* Records the present moment as the peak if it is one. */
static inline void gm_peak_raise(int device, enum gm_holes_level level, uint64_t used_bytes,
				 uint64_t reserved_bytes)
{
	const struct gm_peak_record *record = gm_peak_of(device, level)->record;

	if (used_bytes && (!record || used_bytes >= record->used_bytes))
		gm_peak_set(device, level, used_bytes, reserved_bytes);
}

/*
 * To be called before an allocation of the level ends: a block or a segment of PyTorch's, or what
 * lies in a slab.
 */
static inline void gm_peak_freed(int device, enum gm_holes_level level,
				 const struct gm_alloc_record *alloc)
{
	struct gm_peak *peak = gm_peak_of(device, level);

	if (alloc->serial <= peak->serial)
		gm_peak_keep(peak, level, alloc);
}

#endif
