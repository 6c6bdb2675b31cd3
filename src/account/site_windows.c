/*
 * See site_windows.h. Calls nothing.
 */
#include "account/site_windows.h"

void gm_merge_windows(struct gm_window *into, const struct gm_window *first,
		      const struct gm_window *second)
{
	struct gm_window merged = {
		.min_bytes =
			first->min_bytes < second->min_bytes ? first->min_bytes : second->min_bytes,
		.max_bytes =
			first->max_bytes > second->max_bytes ? first->max_bytes : second->max_bytes,
		.last_bytes = second->last_bytes,
	};

	*into = merged;
}

/* Neighbours become one window each; a last one without a neighbour stays as it is. */
static void merge_neighbours(struct gm_site_record *site)
{
	struct gm_window *windows = site->windows;
	uint32_t i;

	for (i = 0; 2 * i <= site->window_current; i++)
		gm_merge_windows(&windows[i], &windows[2 * i],
				 2 * i + 1 <= site->window_current ? &windows[2 * i + 1]
								   : &windows[2 * i]);
	site->window_current /= 2;
	site->window_merges++;
}

/* The first mark made all windows of time into window 0. */
static void collapse(struct gm_site_record *site)
{
	while (site->window_current > 0)
		merge_neighbours(site);
	site->window_merges = 0;
	site->window_resets = 1;
}

void gm_site_follow_windows(struct gm_site_record *site, uint32_t current, uint32_t merges,
			    uint32_t resets)
{
	if (site->window_resets < resets)
		collapse(site);
	while (site->window_merges <
	       merges) /* a site made late has a high window from the start: still right */
		merge_neighbours(site);
	while (site->window_current < current) {
		uint64_t last = site->windows[site->window_current].last_bytes;

		site->windows[++site->window_current] = (struct gm_window){last, last, last};
	}
}

void gm_site_complete_windows(struct gm_site_record *site, const struct gm_header *header)
{
	uint32_t current =
		header->window_current < GM_WINDOWS ? header->window_current : GM_WINDOWS - 1;
	uint32_t merges = header->window_merges < 64 ? header->window_merges
						     : 64; /* no run doubles as often */

	if (site->window_current >= GM_WINDOWS)
		site->window_current = GM_WINDOWS - 1;
	gm_site_follow_windows(site, current, merges, header->window_resets != 0);
	site->window_current = (uint8_t)current;
}
