/*
 * The accounting of allocations: what an allocation, a free and a change of size do to the records
 * of a site, of a level and of a kind's usage. The tracker applies these steps to the mapped file
 * at every event, the report to records of its own when it plays a history, imports a snapshot or
 * repairs a killed process's file.
 *
 * All functions work on the records that they are given and on nothing else. Who calls them has
 * exclusive access to these records (the tracker: its lock); on that condition they are safe on any
 * thread and in signal handlers. Sizes are bytes, times nanoseconds since the process's time 0.
 * They are inline because an event of the tracker takes about a hundred instructions in all.
 */
#ifndef GM_ACCOUNT_COUNTERS_H
#define GM_ACCOUNT_COUNTERS_H

#include "account/kinds.h"
#include "account/sampling.h"

/* ---- devices ---- */

#define GM_DEVICES 64		    /* device ordinals beyond are counted with the last */
#define GM_SLOTS   (GM_DEVICES + 1) /* slot 0 is the host */

/* The index of a device's records in arrays of GM_SLOTS. */
static inline unsigned gm_slot(int device)
{
	unsigned slot = (unsigned)device + 1;

	if (__builtin_expect(slot <= GM_DEVICES, 1))
		return slot; /* of the host, whose device is -1, 0 */
	return device < 0 ? 0 : GM_DEVICES;
}

/* ---- sites ---- */

/* Prepares the zeroed record of a site that is met for the first time. */
static inline void gm_site_begin(struct gm_site_record *site, uint64_t now_ns)
{
	site->first_ns = now_ns;
	site->min_alloc_bytes = UINT64_MAX;
}

/*
 * To be called before a change of the site: if its level stood at its peak since the site last
 * changed, the site's bytes at the peak are those that it still has (layout.h, struct
 * gm_site_record). `level` may be NULL.
 */
static inline void gm_site_settle(struct gm_site_figures *site, const struct gm_level_record *level)
{
	if (level && site->epoch < level->epoch) {
		site->bytes_at_peak = site->live_bytes;
		site->epoch = level->epoch;
	}
}

/* To be called after a change of the site: extends its open window by the bytes that it has now. */
static inline void gm_site_note_window(struct gm_site_record *site)
{
	struct gm_window *window = &site->windows[site->window_current];

	window->last_bytes = site->live_bytes;
	if (site->live_bytes < window->min_bytes)
		window->min_bytes = site->live_bytes;
	if (site->live_bytes > window->max_bytes)
		window->max_bytes = site->live_bytes;
}

/* `count` allocations of the site, of `bytes` each. Its windows are up to date (site_windows.h);
 * `level` as in gm_site_settle. */
static inline void gm_site_add(struct gm_site_record *site, uint64_t bytes, uint64_t count,
			       uint64_t serial, uint64_t now_ns,
			       const struct gm_level_record *level)
{
	gm_site_settle(&site->figures, level);
	site->live_bytes += bytes * count;
	site->live_count += count;
	site->allocated_bytes += bytes * count;
	if (__builtin_expect(!site->allocations, 0))
		site->first_serial = serial;
	site->allocations += count;
	site->last_ns = now_ns;
	if (site->live_bytes > site->peak_bytes)
		site->peak_bytes = site->live_bytes;
	if (bytes < site->min_alloc_bytes)
		site->min_alloc_bytes = bytes;
	if (bytes > site->max_alloc_bytes)
		site->max_alloc_bytes = bytes;
	gm_site_note_window(site);
}

/* `count` live allocations of the site, of `bytes` each, were made before the first mark
 * (GM_ALLOC_BEFORE_MARK). */
static inline void gm_site_add_stray(struct gm_site_figures *site, uint64_t bytes, uint64_t count)
{
	site->stray_bytes += bytes * count;
	site->stray_count += count;
}

/* `frees` such allocations, of `bytes` in all, were freed. */
static inline void gm_site_remove_stray(struct gm_site_record *site, uint64_t bytes, uint64_t frees)
{
	site->stray_bytes -= bytes;
	site->stray_count -= frees;
}

/*
 * A free of the site. `frees` is 1, or 0 where `bytes` are only a part of an allocation that goes
 * on; `stray`: the allocation has GM_ALLOC_BEFORE_MARK.
 */
static inline void gm_site_remove(struct gm_site_record *site, uint64_t bytes, uint64_t frees,
				  bool stray, const struct gm_level_record *level)
{
	gm_site_settle(&site->figures, level);
	site->live_bytes -= bytes;
	site->live_count -= frees;
	site->freed_bytes += bytes;
	site->frees += frees;
	if (__builtin_expect(stray, 0))
		gm_site_remove_stray(site, bytes, frees);
	gm_site_note_window(site);
}

/* A live allocation of the site turns out to be larger by `more_bytes`. */
static inline void gm_site_resize(struct gm_site_record *site, uint64_t more_bytes,
				  const struct gm_level_record *level)
{
	gm_site_settle(&site->figures, level);
	site->live_bytes += more_bytes;
	site->allocated_bytes += more_bytes;
	if (site->live_bytes > site->peak_bytes)
		site->peak_bytes = site->live_bytes;
	gm_site_note_window(site);
}

/* ---- levels ---- */

static inline void gm_level_raise_peak(struct gm_level_record *level, uint64_t now_ns)
{
	if (level->current_bytes >= level->peak_bytes) {
		if (level->current_bytes > level->peak_bytes)
			level->peak_at_ns = now_ns;
		level->peak_bytes = level->current_bytes;
		level->epoch++;
	}
}

static inline void gm_level_add(struct gm_level_record *level, uint64_t bytes, uint64_t now_ns)
{
	level->current_bytes += bytes;
	level->current_count++;
	level->allocated_bytes += bytes;
	level->allocations++;
	gm_level_raise_peak(level, now_ns);
}

static inline void gm_level_remove(struct gm_level_record *level, uint64_t bytes, uint64_t frees)
{
	level->current_bytes -= bytes;
	level->current_count -= frees;
	level->freed_bytes += bytes;
	level->frees += frees;
}

/*
 * Changes the bytes that the driver holds for the level by `change`, modulo 2^64: the change may be
 * negative.
 */
static inline void gm_level_physical(struct gm_level_record *level, uint64_t change)
{
	level->physical_bytes += change;
	if (level->physical_bytes > level->physical_peak_bytes)
		level->physical_peak_bytes = level->physical_bytes;
}

/* The series of the timeline that a level's total belongs to; of the driver's level the host has
 * its own. */
static inline enum gm_series gm_level_series(unsigned level, int device)
{
	if (level == GM_LEVEL_TORCH)
		return GM_SERIES_TORCH_ALLOCATED;
	if (level == GM_LEVEL_CUSTOM)
		return GM_SERIES_CUSTOM;
	return device < 0 ? GM_SERIES_PINNED : GM_SERIES_TRACKED;
}

/* ---- usage ---- */

static inline void gm_usage_add(struct gm_usage_record *usage, uint64_t bytes)
{
	usage->current_bytes += bytes;
	usage->current_count++;
	usage->allocated_bytes += bytes;
	usage->allocations++;
	if (usage->current_bytes > usage->peak_bytes)
		usage->peak_bytes = usage->current_bytes;
}

static inline void gm_usage_remove(struct gm_usage_record *usage, uint64_t bytes, uint64_t frees)
{
	usage->current_bytes -= bytes;
	usage->current_count -= frees;
	usage->freed_bytes += bytes;
	usage->frees += frees;
}

static inline void gm_usage_resize(struct gm_usage_record *usage, uint64_t more_bytes)
{
	usage->current_bytes += more_bytes;
	usage->allocated_bytes += more_bytes;
	if (usage->current_bytes > usage->peak_bytes)
		usage->peak_bytes = usage->current_bytes;
}

/* ---- all of them ---- */

/* The records that an allocation counts in. */
struct gm_counters {
	struct gm_site_record *site;   /* NULL: not known */
	struct gm_level_record *level; /* of its device and level; NULL: there is none */
	struct gm_usage_record *usage; /* of its device and kind; NULL: in none (gm_in_usage) */
	bool in_level;		       /* counts in the level (gm_in_level), too */
	int32_t extra;		       /* of the allocation's record */
};

/* Returns the site if the allocation counts in its figures, else NULL. */
static inline struct gm_site_record *gm_counted_site(const struct gm_counters *in)
{
	return in->extra < 0 ? NULL : in->site;
}

/*
 * Returns the records of an allocation whose site and level are known to be there and which counts
 * in the level, without a look at them: for the tracker's fast paths.
 */
static inline struct gm_counters gm_counters_known(struct gm_site_record *site,
						   struct gm_level_record *level,
						   struct gm_usage_record *usage)
{
	if (!site || !level)
		__builtin_unreachable();
	return (struct gm_counters){.site = site, .level = level, .usage = usage, .in_level = true};
}

/* An allocation. The site's windows are up to date. */
static inline void gm_count_alloc(const struct gm_counters *in, uint64_t bytes, uint64_t serial,
				  uint64_t now_ns)
{
	struct gm_site_record *site = gm_counted_site(in);

	if (site)
		gm_site_add(site, bytes, gm_copies(in->extra), serial, now_ns, in->level);
	if (in->usage)
		gm_usage_add(in->usage, bytes);
	if (!in->level || !in->in_level)
		return;
	gm_level_add(in->level, bytes, now_ns);
	if (site && in->level->current_bytes > site->level_max_bytes)
		site->level_max_bytes = in->level->current_bytes;
}

/* A free; `frees` and `stray` as in gm_site_remove. The site's windows are up to date. */
static inline void gm_count_free(const struct gm_counters *in, uint64_t bytes, uint64_t frees,
				 bool stray)
{
	struct gm_site_record *site = gm_counted_site(in);
	uint64_t copies = gm_copies(in->extra);

	if (site)
		gm_site_remove(site, bytes * copies, frees * copies, stray, in->level);
	if (in->usage)
		gm_usage_remove(in->usage, bytes, frees);
	if (in->level && in->in_level)
		gm_level_remove(in->level, bytes, frees);
}

/* A free, already counted or not, by CPython's garbage collector, of what was allocated at
 * `since_ns`. */
static inline void gm_count_collected(const struct gm_counters *in, uint64_t bytes,
				      uint64_t since_ns)
{
	struct gm_level_record *level = in->level;

	bytes *= gm_copies(in->extra);
	if (in->site) {
		in->site->collected_bytes += bytes;
		in->site->collected_count += gm_copies(in->extra);
	}
	if (!level || !in->in_level || since_ns > level->peak_at_ns)
		return;
	if (level->collected_peak_ns != level->peak_at_ns) {
		level->collected_peak_ns = level->peak_at_ns;
		level->collected_since_bytes = 0;
	}
	level->collected_since_bytes += bytes;
	if (level->collected_since_bytes > level->collected_of_peak_bytes)
		level->collected_of_peak_bytes = level->collected_since_bytes;
}

/* A live allocation turns out to be larger by `more_bytes`. The site's windows are up to date. */
static inline void gm_count_resize(const struct gm_counters *in, uint64_t more_bytes,
				   uint64_t now_ns)
{
	struct gm_site_record *site = gm_counted_site(in);

	if (site)
		gm_site_resize(site, more_bytes * gm_copies(in->extra), in->level);
	if (in->usage)
		gm_usage_resize(in->usage, more_bytes);
	if (!in->level || !in->in_level)
		return;
	in->level->current_bytes += more_bytes;
	in->level->allocated_bytes += more_bytes;
	gm_level_raise_peak(in->level, now_ns);
}

/* An allocation that CUDA refused. */
static inline void gm_count_failure(const struct gm_counters *in)
{
	if (in->site)
		in->site->failures++;
	if (in->usage)
		in->usage->failures++;
	if (in->level)
		in->level->failures++;
}

/* ---- what only a reader needs (counters.c) ---- */

/*
 * Take an event back. gm_count_shift adds `live` times `bytes` to what is live, `allocated` times
 * to what was allocated and `freed` times to what was freed; each is -1, 0 or 1. Peaks, windows and
 * times stay as they are, for they cannot be taken back.
 */
void gm_count_shift(const struct gm_counters *in, uint64_t bytes, int live, int allocated,
		    int freed);
void gm_uncount_failure(const struct gm_counters *in);

#endif
