/*
 * Figures over time in bounded memory: each series has GM_TIMELINE_POINTS points of equal width,
 * which are merged in pairs when the run outgrows them. For track/, under the lock.
 */
#ifndef GM_TRACK_TIMELINE_H
#define GM_TRACK_TIMELINE_H

#include "account/counters.h"
#include "track/state.h"

/* The open point of a series, so that most events touch little else. */
struct gm_open_series {
	struct gm_timeline_record *record; /* NULL before the first value */
	uint64_t end_ns;		   /* when the next point begins */
	uint64_t min_bytes, max_bytes;	   /* of the open point */
	uint32_t point;			   /* its index in the record */
};
extern struct gm_open_series gm_open_series[GM_SLOTS][GM_SERIES_COUNT]
	__attribute__((visibility("hidden")));

void gm_timeline_reset(void);

/*
 * Opens the point of the present time, and makes the series if it does not exist. Returns false if
 * the file is full.
 */
bool gm_timeline_open(struct gm_open_series *open, int device, enum gm_series series);

/* Sets the value of a series from now on. Its point of the present time is open. */
static inline void gm_series_set(struct gm_open_series *open, uint64_t bytes)
{
	open->record->last_bytes[open->point] = bytes;
	if (bytes < open->min_bytes)
		open->record->min_bytes[open->point] = open->min_bytes = bytes;
	if (bytes > open->max_bytes)
		open->record->max_bytes[open->point] = open->max_bytes = bytes;
}

/* Sets the value of a device's series from now on. */
static inline void gm_timeline_set(int device, enum gm_series series, uint64_t bytes)
{
	struct gm_open_series *open = &gm_open_series[gm_slot(device)][series];

	if (__builtin_expect(gm_track.now_ns >= open->end_ns, 0) &&
	    !gm_timeline_open(open, device, series))
		return;
	gm_series_set(open, bytes);
}

#endif
