/*
 * Figures over time in bounded memory.
 */
#include "track/timeline.h"

#include <string.h>

#define FIRST_WIDTH_NS 100000u

struct gm_open_series gm_open_series[GM_SLOTS][GM_SERIES_COUNT];

void gm_timeline_reset(void)
{
	memset(gm_open_series, 0, sizeof(gm_open_series));
}

static struct gm_timeline_record *make_record(int device, enum gm_series series)
{
	struct gm_timeline_record *record;
	uint32_t index;

	record = gm_store_append(GM_TABLE_TIMELINE, 1, &index);
	if (!record)
		return NULL;
	record->device = (int16_t)device;
	record->series = (uint8_t)series;
	record->width_ns = FIRST_WIDTH_NS;
	record->points = 1; /* the value is 0 from time 0 until now */
	gm_store_publish(GM_TABLE_TIMELINE);
	return record;
}

/* Merges the points in pairs, which makes them twice as wide. */
static void halve(struct gm_timeline_record *record)
{
	uint32_t i;

	for (i = 0; 2 * i < record->points; i++) {
		uint32_t a = 2 * i, b = a + 1 < record->points ? a + 1 : a;

		record->min_bytes[i] = record->min_bytes[a] < record->min_bytes[b]
					       ? record->min_bytes[a]
					       : record->min_bytes[b];
		record->max_bytes[i] = record->max_bytes[a] > record->max_bytes[b]
					       ? record->max_bytes[a]
					       : record->max_bytes[b];
		record->last_bytes[i] = record->last_bytes[b];
	}
	record->points = i;
	record->width_ns *= 2;
}

/* Opens the point of the present time, and fills those before it with the last value. */
static void open_point(struct gm_open_series *open)
{
	struct gm_timeline_record *record = open->record;
	uint32_t i;

	while (gm_track.now_ns / record->width_ns >= GM_TIMELINE_POINTS)
		halve(record);
	while (record->points <= gm_track.now_ns / record->width_ns) {
		uint64_t last = record->last_bytes[record->points - 1];

		i = record->points;
		record->min_bytes[i] = record->max_bytes[i] = record->last_bytes[i] = last;
		__atomic_store_n(&record->points, i + 1, __ATOMIC_RELEASE);
	}
	i = record->points - 1;
	open->point = i;
	open->min_bytes = record->min_bytes[i];
	open->max_bytes = record->max_bytes[i];
	open->end_ns = (i + 1) * record->width_ns;
}

bool gm_timeline_open(struct gm_open_series *open, int device, enum gm_series series)
{
	if (!open->record)
		open->record = make_record(device, series);
	if (open->record)
		open_point(open);
	return open->record != NULL;
}
