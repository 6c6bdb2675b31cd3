/*
 * Sites: each is one stack, kind, device and level, with live, total and peak figures.
 */
#ifndef GM_TRACK_SITES_H
#define GM_TRACK_SITES_H

#include "store/writer.h"
#include "track/event.h"
#include "track/state.h"

/* ---- for track/, under the lock unless a function says otherwise ---- */

/* The site at which a stack was last seen, which is mostly the only one that it has. */
struct gm_latest_site {
	uint32_t index;	 /* of the site plus 1; 0: none */
	uint32_t offset; /* gm_store_offset of its record (atomic: gm_site_prefetch) */
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

/*
 * Prefetches the site that an allocation with this stack (or GM_NONE) would probably have. Any
 * thread, without the lock: what is read may be outdated, and the prefetch is then of no use and
 * does no harm. A file is open.
 */
static inline void gm_site_prefetch(uint32_t stack)
{
	uint32_t capacity = __atomic_load_n(&gm_latest_sites.capacity, __ATOMIC_ACQUIRE);
	const struct gm_latest_site *latest =
		__atomic_load_n(&gm_latest_sites.site, __ATOMIC_RELAXED);
	const struct gm_site_record *site;

	if (stack >= capacity)
		return;
	site = gm_store_at(__atomic_load_n(&latest[stack].offset, __ATOMIC_RELAXED));
	__builtin_prefetch(site, 1);
	__builtin_prefetch(&site->peak_bytes, 1);
	__builtin_prefetch(&site->windows[__atomic_load_n(gm_track.window, __ATOMIC_RELAXED)], 1);
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
