/*
 * A site's windows brought up to date. The file's windows are merged and opened as time goes on or
 * marks are made; a site follows when it changes the next time, or when it is read.
 */
#ifndef GM_ACCOUNT_SITE_WINDOWS_H
#define GM_ACCOUNT_SITE_WINDOWS_H

#include "store/layout.h"

/* Makes one window of two, of which the second follows the first. `into` may be either. */
void gm_merge_windows(struct gm_window *into, const struct gm_window *first,
		      const struct gm_window *second);

/*
 * Brings the site's windows to where the file's are (`window_current`, `window_merges` and
 * `window_resets` of struct gm_header): merges what was merged since the site last changed, and
 * opens what was opened with the bytes that the site had all that time. To be called before a
 * change of the site. `current` and the site's own window are below GM_WINDOWS. Needs exclusive
 * access to the site alone; safe in signal handlers.
 */
void gm_site_follow_windows(struct gm_site_record *site, uint32_t current, uint32_t merges,
			    uint32_t resets);

/*
 * Brings the windows of a record up to date that was read from the file with this header, either of
 * which may be damaged: afterwards windows 0 to `window_current`, which is the header's, can be
 * looked at.
 */
void gm_site_complete_windows(struct gm_site_record *site, const struct gm_header *header);

#endif
