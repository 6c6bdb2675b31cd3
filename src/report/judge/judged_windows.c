/*
 * See judged_windows.h.
 */
#include "report/judge/judged_windows.h"
#include "report/history/events.h"
#include <string.h>

#define MOST_EVENTS (1u << 22) /* gone through twice: a longer history takes seconds */

/* ---- windows from the history ---- */

/* The history, as it is gone through. */
struct course {
	struct gm_doc *doc;
	struct gm_judged_windows *windows;
	uint64_t freed, width;	 /* in frees */
	uint64_t freed_by_alloc; /* before the last allocation: what is freed later is no work */
	const uint32_t *place;	 /* of each site in `of` and `live`; GM_NONE: not counted */
	unsigned places;
	uint64_t *live; /* bytes */
};

static bool is_free(const struct gm_event_record *event)
{
	return (event->op == GM_OP_FREE || event->op == GM_OP_IMPLICIT_FREE) && event->serial;
}

static void measure(const struct gm_event_record *event, void *data)
{
	struct course *course = data;

	if (is_free(event))
		course->freed++;
	else if (event->op == GM_OP_ALLOC)
		course->freed_by_alloc = course->freed;
}

static void open_window(struct course *course, uint64_t time_ns)
{
	struct gm_judged_windows *windows = course->windows;

	windows->start_ns[++windows->open] = time_ns;
	for (unsigned i = 0; i < course->places; i++)
		windows->of[i][windows->open] =
			(struct gm_window){course->live[i], course->live[i], course->live[i]};
}

static void count_event(const struct gm_event_record *event, void *data)
{
	struct course *course = data;
	struct gm_judged_windows *windows = course->windows;
	uint32_t place = event->site < course->doc->sites_count
				 ? course->place[course->doc->sites[event->site].merged]
				 : GM_NONE;
	struct gm_window *window;

	course->freed += is_free(event);
	if (course->freed > course->freed_by_alloc)
		return; /* the work has ended */
	if (windows->open + 1 < GM_WINDOWS &&
	    course->freed >= (windows->open + 1) * course->width && event->op == GM_OP_ALLOC)
		open_window(course, event->time_ns);
	if (place == GM_NONE || (event->op != GM_OP_ALLOC && !is_free(event)))
		return;
	course->live[place] += event->op == GM_OP_ALLOC ? event->bytes : -event->bytes;
	window = &windows->of[place][windows->open];
	window->last_bytes = course->live[place];
	if (window->min_bytes > window->last_bytes)
		window->min_bytes = window->last_bytes;
	if (window->max_bytes < window->last_bytes)
		window->max_bytes = window->last_bytes;
}

/* Returns whether the history reaches back to the start of the run, and is short enough. */
static bool is_complete(struct gm_doc *doc)
{
	if (doc->header->events > MOST_EVENTS)
		return false;
	if (doc->journal)
		return !gm_history_gap(doc);
	return doc->complete && gm_load_history(doc).complete;
}

/* False if the history does not serve. `place` is of each site, below `places`, or GM_NONE. */
static bool count_windows(struct gm_doc *doc, struct gm_judged_windows *windows,
			  const uint32_t *place, unsigned places)
{
	struct course course = {.doc = doc, .windows = windows, .place = place, .places = places};

	if (!is_complete(doc))
		return false;
	gm_history_each(doc, measure, &course);
	course.freed = 0;
	course.width = course.freed_by_alloc / GM_WINDOWS + 1;
	course.live = gm_zone_alloc(&doc->zone, (size_t)places + 1, sizeof(*course.live));
	windows->of = gm_zone_alloc(&doc->zone, (size_t)places + 1, sizeof(*windows->of));
	windows->open = 0;
	windows->marks = false;
	gm_history_each(doc, count_event, &course);
	return true;
}

static bool count_windows_of_sites(struct gm_doc *doc, struct gm_judged_windows *windows)
{
	uint32_t *place = gm_zone_alloc(&doc->zone, (size_t)doc->sites_count + 1, sizeof(*place));

	for (unsigned i = 0; i < doc->sites_count; i++)
		place[i] = i;
	return count_windows(doc, windows, place, doc->sites_count);
}

bool gm_count_windows_of_all(struct gm_doc *doc, const uint32_t *sites, unsigned count,
			     struct gm_judged_windows *windows)
{
	uint32_t *place = gm_zone_alloc(&doc->zone, (size_t)doc->sites_count + 1, sizeof(*place));

	for (unsigned i = 0; i < doc->sites_count; i++)
		place[i] = GM_NONE;
	for (unsigned i = 0; i < count; i++)
		place[sites[i]] = 0;
	return count_windows(doc, windows, place, 1);
}

/* ---- both kinds ---- */

struct gm_judged_windows gm_find_judged_windows(struct gm_doc *doc, bool phases)
{
	const struct gm_header *header = doc->header;
	struct gm_judged_windows windows = {
		.marks = header->window_marks,
		.open = header->window_current < GM_WINDOWS ? header->window_current
							    : GM_WINDOWS - 1,
	};

	if (header->window_marks && phases && count_windows_of_sites(doc, &windows))
		return windows;
	memcpy(windows.start_ns, header->window_start_ns, sizeof(windows.start_ns));
	return windows;
}

unsigned gm_window_at(const struct gm_judged_windows *windows, uint64_t time_ns)
{
	unsigned i = windows->open;

	while (i && windows->start_ns[i] > time_ns)
		i--;
	return i;
}

struct gm_window gm_recorded_window(const struct gm_judged_windows *windows,
				    const struct gm_doc *doc, const struct gm_site *site,
				    unsigned window)
{
	return windows->of ? windows->of[site - doc->sites][window] : gm_site_window(site, window);
}

unsigned gm_windows_of(const struct gm_judged_windows *windows, const struct gm_doc *doc,
		       const struct gm_site *site, struct gm_window found[GM_WINDOWS])
{
	unsigned open = site->record.window_current < GM_WINDOWS ? site->record.window_current
								 : GM_WINDOWS - 1;

	for (unsigned i = 0; i < GM_WINDOWS; i++)
		found[i] = gm_recorded_window(windows, doc, site, i);
	if (windows->of)
		return windows->open;
	/* Only the sum at a window's end is known of several records. */
	for (unsigned i = 0; site->records > 1 && i < GM_WINDOWS; i++)
		found[i].min_bytes = found[i].max_bytes = found[i].last_bytes;
	if (site->work_bytes == site->record.live_bytes)
		return open;
	/*
	 * Frees after the end of the work have lowered the open window: the floor is taken for the
	 * lower of the two values that are known.
	 */
	found[open].last_bytes = found[open].min_bytes = site->work_bytes;
	if (open && found[open - 1].last_bytes < site->work_bytes)
		found[open].min_bytes = found[open - 1].last_bytes;
	if (found[open].max_bytes < site->work_bytes)
		found[open].max_bytes = site->work_bytes;
	return open;
}
