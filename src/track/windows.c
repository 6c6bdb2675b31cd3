/*
 * Finds the open window.
 */
#include "track/windows.h"

/* Sets gm_track.window and gm_track.window_end for the window that was just opened. */
static void set_open_window(void)
{
	uint64_t next = (uint64_t)(gm_file->window_current + 1) << gm_file->window_merges;

	/* atomic, because gm_site_prefetch reads it without the lock */
	__atomic_store_n(gm_track.window, (uint8_t)gm_file->window_current, __ATOMIC_RELAXED);
	gm_track.window[1] = (uint8_t)gm_file->window_merges;
	gm_track.window[2] = (uint8_t)gm_file->window_resets;
	gm_track.window_end = gm_file->window_marks ? UINT64_MAX : next * gm_file->window_width;
}

void gm_windows_start(void)
{
	gm_file->window_width = 1;
	memset(gm_file->window_mark, 0xff, sizeof(gm_file->window_mark));
	set_open_window();
}

/* Opens the window that `units` of first widths, or of marks, lie in, and those before it. */
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
	set_open_window();
}

void gm_windows_open_due(void)
{
	open_window(gm_file->freed / gm_file->window_width, GM_NONE);
}

void gm_windows_open_at_mark(void)
{
	if (!gm_file->window_marks) { /* window 0 is what was before the first mark */
		gm_file->window_marks = 1;
		gm_file->window_resets = 1;
		gm_file->window_merges = 0;
		gm_file->window_current = 0;
		gm_file->window_filled = 0;
	}
	gm_file->window_filled++;
	open_window(gm_file->window_filled, gm_file->tables[GM_TABLE_MARKS].count - 1);
}
