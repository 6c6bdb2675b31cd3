/*
 * See segments.h.
 */
#include "report/holes/segments.h"
#include "report/support/memory.h"

struct gm_segment *gm_find_segments(const struct gm_extents *extents, unsigned *count)
{
	struct gm_segment *segments = NULL, segment = {0};
	unsigned room = 0;

	*count = 0;
	while (gm_segment_next(extents->list, extents->count, &segment)) {
		if (*count == room) {
			room = room ? 2 * room : 64;
			segments = gm_realloc(segments, room * sizeof(*segments));
		}
		segments[(*count)++] = segment;
	}
	return segments;
}

struct gm_segment *gm_segment_at(struct gm_segment *segments, unsigned count, uint64_t address)
{
	unsigned low = 0, high = count;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (segments[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && segments[low].start <= address ? &segments[low] : NULL;
}
