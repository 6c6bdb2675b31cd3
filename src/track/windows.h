/*
 * The open window. A run has at most sixteen windows: stretches of equal work, or those between
 * marks once the program has made one. Work is measured by the frees that an allocation followed:
 * the steps of a loop allocate and free, a set-up only allocates, and frees at the end are followed
 * by nothing. Neither pauses nor the speed of the machine change the windows.
 *
 * With n the number of frees, or of marks, the open window is n >> merges; when that would be the
 * seventeenth, neighbours are merged. Sites catch up when they change. For track/, under the lock.
 */
#ifndef GM_TRACK_WINDOWS_H
#define GM_TRACK_WINDOWS_H

#include "account/site_windows.h"
#include "track/state.h"

#include <string.h>

/* Opens the first window when a file was opened. */
void gm_windows_start(void);

/* Opens the windows that are due by the number of frees. */
void gm_windows_open_due(void);

/* Opens a window at the mark that was recorded last. */
void gm_windows_open_at_mark(void);

/* To be called at an allocation, before its site changes. */
static inline void gm_windows_advance(void)
{
	if (__builtin_expect(gm_file->freed >= gm_track.window_end, 0))
		gm_windows_open_due();
}

/*
 * Brings a site's windows up to the open one, before the site changes. The three bytes of the site
 * from window_current on, and a fourth that is 0, equal gm_track.window if nothing is to be done.
 */
static inline void gm_site_catch_up(struct gm_site_record *site)
{
	const uint8_t *window =
		(const uint8_t *)site + offsetof(struct gm_site_record, window_current);

	if (__builtin_expect(memcmp(window, gm_track.window, sizeof(gm_track.window)), 0))
		gm_site_follow_windows(site, gm_file->window_current, gm_file->window_merges,
				       gm_file->window_resets);
}

#endif
