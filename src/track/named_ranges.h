/*
 * Ranges: named stretches of a thread's work, nested, which a program opens and closes by NVTX or
 * the public header, and the stretches between the program's marks. A range is measured by what was
 * in use on each device while it was open: at its start, at its end, and the most in between. What
 * is in use counts for all threads; which allocations are a range's own goes by the thread.
 *
 * BOUNDS. The file has one record for each name in each enclosing range (struct gm_range_record),
 * as long as few names differ only in their numbers ("layer 3"); of many ("request 4711") the rest
 * shares the record of their group ("request #"), which keeps the worst of them. So neither the
 * file nor the tracker's memory grows with the number of names.
 *
 * COST. A range is opened and closed with one update of the tables. The most that was in use since
 * the last such event is kept once, by in_use.c, and handed to the innermost open range of each
 * thread; a range that is closed hands its own to the one around it.
 */
#ifndef GM_TRACK_NAMED_RANGES_H
#define GM_TRACK_NAMED_RANGES_H

#include "store/layout.h"

#include <stdbool.h>

struct gm_range_name {
	const char *text;	/* cut after GM_RANGE_NAME_BYTES - 1 bytes */
	const char *domain;	/* NULL: NVTX's default domain, or none; lives on */
	uint16_t domain_number; /* tells domains apart, also in gm_track_range_pop */
	uint8_t source;		/* enum gm_range_source */
	bool marked;		/* gm_track_range_pop returns it in `marked` */
	bool recorded;		/* false: it is only kept for `marked` */
};

/*
 * Open and close the innermost range of the calling thread, of a domain. `recording`: a file is
 * open and records; otherwise the thread's nesting alone is kept, without the tracker's lock.
 * Return how deep the range lies, from 0; -1 if the thread has no such range, or none can be kept
 * for it.
 */
int gm_track_range_push(const struct gm_range_name *name, bool recording);
int gm_track_range_pop(uint16_t domain_number, bool recording, bool *marked);

/*
 * Open and close a range that any thread may close. The id is never 0; gm_track_range_end returns
 * whether the range was marked.
 */
uint64_t gm_track_range_start(const struct gm_range_name *name, bool recording);
bool gm_track_range_end(uint64_t id, bool recording);

/* ---- for track/, under the lock ---- */

/*
 * Writes the names of the calling thread's open ranges, the outermost first, a line each, and fills
 * the rest with NULs. Names that find no room are left out.
 */
void gm_ranges_open_names(char *names, size_t bytes);

/* Forgets what was recorded. Ranges that are open stay open, and are recorded from now on. */
void gm_ranges_reset(void);

/* The stretch up to a mark ends, and the next begins. */
void gm_ranges_mark(const char *name);

#endif
