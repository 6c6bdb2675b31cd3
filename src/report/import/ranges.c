/*
 * Sorted arrays of address ranges (ranges.h).
 */
#include "report/import/ranges.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

unsigned gm_ranges_at(const struct gm_ranges *set, uint64_t address)
{
	unsigned low = 0, high = set->count;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (set->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct gm_tagged_range *gm_ranges_find(struct gm_ranges *set, uint64_t start)
{
	unsigned i = gm_ranges_at(set, start);

	return i < set->count && set->ranges[i].start == start ? &set->ranges[i] : NULL;
}

static void insert(struct gm_ranges *set, unsigned at, struct gm_tagged_range range)
{
	if (set->count == set->room) {
		set->room = set->room ? 2 * set->room : 64;
		set->ranges = gm_realloc(set->ranges, set->room * sizeof(*set->ranges));
	}
	memmove(set->ranges + at + 1, set->ranges + at, (set->count - at) * sizeof(range));
	set->ranges[at] = range;
	set->count++;
}

static void drop(struct gm_ranges *set, unsigned at)
{
	set->count--;
	memmove(set->ranges + at, set->ranges + at + 1, (set->count - at) * sizeof(*set->ranges));
}

bool gm_ranges_add(struct gm_ranges *set, uint64_t start, uint64_t end, uint64_t tag)
{
	unsigned at = gm_ranges_at(set, start);

	if (end <= start || (at < set->count && set->ranges[at].start < end))
		return false;
	insert(set, at, (struct gm_tagged_range){start, end, tag});
	return true;
}

bool gm_ranges_remove(struct gm_ranges *set, uint64_t start)
{
	struct gm_tagged_range *range = gm_ranges_find(set, start);

	if (range)
		drop(set, (unsigned)(range - set->ranges));
	return range != NULL;
}

bool gm_ranges_cut(struct gm_ranges *set, uint64_t start, uint64_t end, struct gm_tagged_range *cut)
{
	unsigned at = gm_ranges_at(set, start);
	struct gm_tagged_range range;

	if (end <= start || at >= set->count || set->ranges[at].start > start)
		return false;
	range = set->ranges[at];
	if (end > range.end)
		end = range.end;
	drop(set, at);
	if (range.end > end)
		insert(set, at, (struct gm_tagged_range){end, range.end, range.tag});
	if (range.start < start)
		insert(set, at, (struct gm_tagged_range){range.start, start, range.tag});
	*cut = (struct gm_tagged_range){start, end, range.tag};
	return true;
}

void gm_ranges_free(struct gm_ranges *set)
{
	free(set->ranges);
	*set = (struct gm_ranges){0};
}
