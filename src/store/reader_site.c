/*
 * Site records brought up to date: what the shim does lazily to a site's windows, done at reading by the
 * rules of layout.h. Calls the reader only.
 */
#include "store/reader.h"

static void merge_neighbours(struct gm_window *windows)
{
	for (unsigned i = 0; i < GM_WINDOWS / 2; i++) {
		struct gm_window a = windows[2 * i], b = windows[2 * i + 1];

		windows[i].min_bytes = a.min_bytes < b.min_bytes ? a.min_bytes : b.min_bytes;
		windows[i].max_bytes = a.max_bytes > b.max_bytes ? a.max_bytes : b.max_bytes;
		windows[i].last_bytes = b.last_bytes;
	}
}

/* Fills windows after the site's current one, up to `until`, with its last bytes. */
static void extend_windows(struct gm_site_record *site, unsigned until)
{
	uint64_t last = site->windows[site->window_current].last_bytes;

	for (unsigned i = site->window_current + 1; i <= until && i < GM_WINDOWS; i++)
		site->windows[i] = (struct gm_window){last, last, last};
	if (until > site->window_current)
		site->window_current = until;
}

/* The first mark made all time windows into window 0. */
static void collapse_windows(struct gm_site_record *site)
{
	struct gm_window all = site->windows[0];

	for (unsigned i = 1; i <= site->window_current; i++) {
		if (site->windows[i].min_bytes < all.min_bytes)
			all.min_bytes = site->windows[i].min_bytes;
		if (site->windows[i].max_bytes > all.max_bytes)
			all.max_bytes = site->windows[i].max_bytes;
	}
	all.last_bytes = site->windows[site->window_current].last_bytes;
	site->windows[0] = all;
	site->window_current = 0;
	site->window_merges = 0;
}

bool gm_reader_site(const struct gm_reader *reader, uint32_t index, struct gm_site_record *site)
{
	const struct gm_header *header = gm_reader_header(reader);
	unsigned current =
		header->window_current < GM_WINDOWS ? header->window_current : GM_WINDOWS - 1;
	unsigned merges;

	if (!gm_reader_get(reader, GM_TABLE_SITES, index, site, sizeof(*site)))
		return false;
	if (site->window_current >= GM_WINDOWS)
		site->window_current = GM_WINDOWS - 1;
	if (header->window_resets && !site->window_resets)
		collapse_windows(site);
	/* 64 doublings are more than any run has; a larger number is damage. */
	merges = header->window_merges < 64 ? header->window_merges : 64;
	while (site->window_merges < merges) {
		extend_windows(site, GM_WINDOWS - 1);
		merge_neighbours(site->windows);
		site->window_current = GM_WINDOWS / 2 - 1;
		site->window_merges++;
	}
	extend_windows(site, current);
	site->window_current = current;
	return true;
}
