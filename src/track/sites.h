/*
 * Sites: each is one stack, kind, device and level, with live, total and peak figures.
 */
#ifndef GM_TRACK_SITES_H
#define GM_TRACK_SITES_H

#include "store/writer.h"
#include "track/event.h"

/*
 * Prefetches the site that an allocation with this stack (or GM_NONE) would probably have. Any
 * thread, without the lock; changes nothing.
 */
void gm_track_site_prefetch(uint32_t stack);

/* ---- for track/, under the lock ---- */

/* The site at which a stack was last seen, which is mostly the only one that it has. */
struct gm_latest_site {
	uint32_t index;	 /* of the site plus 1; 0: none */
	uint32_t offset; /* gm_store_offset of its record */
};

struct gm_latest_sites {
	struct gm_latest_site *site;	 /* by the index of the stack */
	struct gm_latest_site stackless; /* of events without a stack */
	uint32_t capacity;		 /* of `site` */
};
extern struct gm_latest_sites gm_latest_sites __attribute__((visibility("hidden")));

void gm_sites_reset(void);

/* Returns the index of an event's site, which is made if it is new; GM_NONE if the file is full. */
uint32_t gm_find_or_make_site(const struct gm_event *event);

/* The live bytes of the site that has most. Any thread; no lock. */
uint64_t gm_sites_most_live_bytes(void);

static inline struct gm_latest_site gm_latest_site_of(uint32_t stack)
{
	return __builtin_expect(stack < gm_latest_sites.capacity, 1) ? gm_latest_sites.site[stack]
								     : gm_latest_sites.stackless;
}

/* Returns an event's site if it is the one at which its stack was last seen; else an index of 0. */
static inline struct gm_latest_site gm_known_site(const struct gm_event *event)
{
	struct gm_latest_site known = gm_latest_site_of(event->stack);
	const struct gm_site_record *site = gm_store_at(known.offset);

	if (__builtin_expect(known.index && site->stack == event->stack &&
				     site->kind == event->kind && site->level == event->level &&
				     site->device == event->device,
			     1) &&
	    (event->stack != GM_NONE || site->function == event->function))
		return known;
	return (struct gm_latest_site){0};
}

#endif
