/*
 * Sixteen windows for the whole run: stretches of equal work, or between marks once the program made
 * one. The work is measured by the frees that an allocation followed: a loop's steps allocate and free, a
 * set-up only allocates, and what frees at the end is followed by nothing. Neither pauses nor the speed of
 * the machine change the windows. With n the frees, or the number of marks, the open window is
 * n >> merges; when that would be the seventeenth, neighbours merge. Sites follow lazily. Called under the
 * lock.
 */
#include "track/state.h"

#include <string.h>

/* The end of the open window, of marks' windows none is known, and how sites tell it from others. */
static void opened(void)
{
	gm_track.window[0] = (uint8_t)gm_file->window_current;
	gm_track.window[1] = (uint8_t)gm_file->window_merges;
	gm_track.window[2] = (uint8_t)gm_file->window_resets;
	gm_track.window_end =
		gm_file->window_marks ? UINT64_MAX
				      : ((uint64_t)(gm_file->window_current + 1) << gm_file->window_merges) *
						gm_file->window_width;
}

void gm_windows_start(void)
{
	gm_file->window_width = 1;
	memset(gm_file->window_mark, 0xff, sizeof(gm_file->window_mark));
	opened();
}

static void open_window(uint64_t units, uint32_t mark)
{
	uint32_t i;

	while (units >> gm_file->window_merges >= GM_WINDOWS) {
		gm_file->window_merges++;
		for (i = 0; i < GM_WINDOWS / 2; i++) {
			gm_file->window_start_ns[i] = gm_file->window_start_ns[2 * i];
			gm_file->window_mark[i] = gm_file->window_mark[2 * i];
		}
		gm_file->window_current /= 2;
	}
	while (gm_file->window_current < units >> gm_file->window_merges) {
		i = ++gm_file->window_current;
		gm_file->window_start_ns[i] = gm_track.now_ns;
		gm_file->window_mark[i] = mark;
	}
	opened();
}

void gm_windows_open(void)
{
	open_window(gm_file->freed / gm_file->window_width, GM_NONE);
}

void gm_windows_mark(void)
{
	if (!gm_file->window_marks) { /* what was before the first mark is window 0 */
		gm_file->window_marks = 1;
		gm_file->window_resets = 1;
		gm_file->window_merges = 0;
		gm_file->window_current = 0;
		gm_file->window_filled = 0;
	}
	gm_file->window_filled++;
	open_window(gm_file->window_filled, gm_file->tables[GM_TABLE_MARKS].count - 1);
}

static void merge_pair(struct gm_window *into, const struct gm_window *a, const struct gm_window *b)
{
	struct gm_window merged = {
		.min_bytes = a->min_bytes < b->min_bytes ? a->min_bytes : b->min_bytes,
		.max_bytes = a->max_bytes > b->max_bytes ? a->max_bytes : b->max_bytes,
		.last_bytes = b->last_bytes,
	};

	*into = merged;
}

static void merge_once(struct gm_site_record *site)
{
	uint32_t i;

	for (i = 0; 2 * i <= site->window_current; i++) {
		const struct gm_window *second = 2 * i + 1 <= site->window_current
							 ? &site->windows[2 * i + 1]
							 : &site->windows[2 * i];

		merge_pair(&site->windows[i], &site->windows[2 * i], second);
	}
	site->window_current /= 2;
	site->window_merges++;
}

static void collapse(struct gm_site_record *site)
{
	while (site->window_current > 0)
		merge_once(site);
	site->window_merges = 0;
	site->window_resets = 1;
}

void gm_site_windows_follow(struct gm_site_record *site)
{
	if (site->window_resets < gm_file->window_resets)
		collapse(site);
	while (site->window_merges < gm_file->window_merges) {
		/* A site made late has a high window number from the start; merging keeps it right. */
		merge_once(site);
	}
	while (site->window_current < gm_file->window_current) {
		struct gm_window *window = &site->windows[++site->window_current];

		window->min_bytes = window->max_bytes = window->last_bytes = site->live_bytes;
	}
}
