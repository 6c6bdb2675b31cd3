/*
 * Sixteen windows for the whole run: stretches of equal work, or between marks once the program
 * made one. The work is measured by the frees that an allocation followed: a loop's steps allocate
 * and free, a set-up only allocates, and what is freed at the end is followed by nothing. Neither
 * pauses nor the speed of the machine change the windows. With n the frees, or the number of marks,
 * the open window is n >> merges; when that would be the seventeenth, neighbours merge. Sites follow
 * lazily (account/site_windows.h). Called under the lock.
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
