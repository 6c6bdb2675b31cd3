/*
 * A series of the timeline (struct gm_timeline_record) as records are filled by a reader: points of
 * a width that is known from the start. The tracker's, which do not know how long the run will be,
 * merge when they are full (track/timeline.c). Who calls has exclusive access to the record. Sizes
 * are bytes.
 */
#ifndef GM_ACCOUNT_SERIES_H
#define GM_ACCOUNT_SERIES_H

#include "store/layout.h"

/* The series has this value now: in its open point, the last one. There is at least one. */
static inline void gm_series_note(struct gm_timeline_record *line, uint64_t bytes)
{
	uint32_t i = line->points - 1;

	line->last_bytes[i] = bytes;
	if (bytes < line->min_bytes[i])
		line->min_bytes[i] = bytes;
	if (bytes > line->max_bytes[i])
		line->max_bytes[i] = bytes;
}

/*
 * The series has this value from `time_ns` on, which is not before the time of the value before.
 * Points until then have the value before, 0 at first; what comes after the last point belongs to
 * it.
 */
static inline void gm_series_put(struct gm_timeline_record *line, uint64_t time_ns, uint64_t bytes)
{
	uint64_t point = time_ns / line->width_ns;
	uint64_t last = line->points ? line->last_bytes[line->points - 1] : 0;

	if (point >= GM_TIMELINE_POINTS)
		point = GM_TIMELINE_POINTS - 1;
	while (line->points <= point) {
		line->min_bytes[line->points] = line->max_bytes[line->points] =
			line->last_bytes[line->points] = last;
		line->points++;
	}
	gm_series_note(line, bytes);
}

#endif
