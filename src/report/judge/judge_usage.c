/*
 * usage.creeping: what a device holds rises over the run and no leak carries it. usage.unstable:
 * the peaks of a program's steps differ.
 */
#include "report/history/events.h"
#include "report/judge/findings.h"
#include "report/judge/growth.h"
#include "report/judge/internal.h"
#include "report/judge/leaks.h"
#include "report/stacks/labels.h"
#include "account/kinds.h"
#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES	 (16ull << 20) /* smaller changes are not worth a line */
#define UNSTABLE_PERCENT 20

/* With PyTorch the driver level is its cache: its blocks tell. */
static unsigned telling_level(const struct gm_doc *doc)
{
	return doc->torch ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER;
}

static bool is_told_by(const struct gm_doc *doc, const struct gm_site_figures *record, int device)
{
	return record->device == device && record->level == telling_level(doc) &&
	       (record->level != GM_LEVEL_DRIVER || gm_kind_owned(record->kind));
}

/* ---- creeping ---- */

/* Memory of which nothing was freed before the end: a set that was made, or a leak that has its own
 * finding. Likewise what the layers of a single pass keep. */
static bool is_set_up(const struct gm_site *site)
{
	return site->one_pass || site->record.frees <= site->work_count - site->record.live_count;
}

/*
 * Returns what the site held at the end of the work, as it counts beside the earlier windows' ends:
 * working memory that was not live when the last window ended is not there at this moment either.
 */
static uint64_t last_bytes(const struct gm_site *site, unsigned open)
{
	return open && !gm_site_window(site, open - 1).last_bytes ? 0 : site->work_bytes;
}

/*
 * Fills in the bytes that the device held at the windows' ends; the open window's are those of the
 * end of the work.
 */
static unsigned device_windows(const struct gm_doc *doc, int device, struct gm_window *windows)
{
	unsigned last = doc->header->window_current < GM_WINDOWS ? doc->header->window_current
								 : GM_WINDOWS - 1;

	memset(windows, 0, GM_WINDOWS * sizeof(*windows));
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		if (!is_told_by(doc, &site->record, device) || is_set_up(site))
			continue;
		for (unsigned w = 0; w < last; w++)
			windows[w].last_bytes += gm_site_window(site, w).last_bytes;
		windows[last].last_bytes += last_bytes(site, last);
	}
	for (unsigned w = 0; w <= last; w++)
		windows[w].min_bytes = windows[w].max_bytes = windows[w].last_bytes;
	return last + 1;
}

static uint64_t leaking_on(struct gm_doc *doc, int device)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < doc->sites_count; i++)
		if (doc->sites[i].verdict == GM_GROW &&
		    is_told_by(doc, &doc->sites[i].record, device))
			bytes += doc->sites[i].work_bytes;
	return bytes;
}

static void judge_creep(struct gm_doc *doc, int device)
{
	struct gm_window windows[GM_WINDOWS];
	unsigned count = device_windows(doc, device, windows);
	struct gm_finding *finding;
	uint64_t first, last;

	if (count <= GM_WARMUP_WINDOWS ||
	    !gm_growth_steady(windows + GM_WARMUP_WINDOWS, count - GM_WARMUP_WINDOWS))
		return;
	first = windows[GM_WARMUP_WINDOWS].last_bytes;
	last = windows[count - 1].last_bytes;
	/* Each leak has one finding. */
	if (last - first < LEAST_BYTES || leaking_on(doc, device) >= (last - first) / 2)
		return;
	finding =
		gm_finding_new(doc, "usage.creeping", GM_WARNING, device, last - first, GM_NO_SITE);
	finding->title = gm_doc_printf(doc, "the device's usage rose by %s, little by little",
				       gm_size(doc, last - first));
	finding->evidence =
		gm_doc_printf(doc, "from %s to %s over %u stretches of equal work, and never fell",
			      gm_size(doc, first), gm_size(doc, last), count - GM_WARMUP_WINDOWS);
	gm_advise(doc, finding,
		  "no single site carries the rise: compare two moments by marks, "
		  "gpumem-report sites --sort live");
}

/* ---- unstable ---- */

#define LEAST_STEPS  16
#define LEAST_RARE   5
#define MOST_PERIOD  64
#define LIKE_PERCENT 2 /* peaks that differ by less are alike */

/* The peaks of steps: between marks of the program, or between returns to a low level. */
struct steps {
	uint64_t *peaks;
	unsigned count, room;
};

struct curve {
	uint64_t *bytes; /* after each event */
	bool *marks;	 /* before it */
	bool *refusals;	 /* after it: what a step would have needed is not known */
	unsigned count;
	bool marked;
};

static bool is_mark_of_program(const struct gm_doc *doc, const struct gm_event_record *event)
{
	return event->op == GM_OP_MARK && event->key < doc->marks_count &&
	       gm_mark_by_program(doc->marks[event->key].record.source);
}

/* Leaves what comes and goes: the curve above the lowest value that it ever returns to. */
static void subtract_floor(struct curve *curve, int64_t least)
{
	uint64_t floor = UINT64_MAX;

	for (unsigned i = curve->count; i--;) {
		/* memory that was live before the first event of the ring is the same for all */
		uint64_t bytes = (uint64_t)((int64_t)curve->bytes[i] - least);

		floor = bytes < floor ? bytes : floor;
		curve->bytes[i] = bytes - floor;
	}
}

/*
 * Returns the curve of the level's live bytes, from event to event of the ring, up to the end of
 * the work.
 */
static struct curve curve_of(struct gm_doc *doc, const struct gm_history *history, int device)
{
	struct curve curve = {
		.bytes = gm_realloc(NULL, ((size_t)history->count + 1) * sizeof(*curve.bytes)),
		.marks = gm_realloc(NULL, ((size_t)history->count + 1) * sizeof(*curve.marks)),
		.refusals =
			gm_realloc(NULL, ((size_t)history->count + 1) * sizeof(*curve.refusals)),
	};
	unsigned end = history->count;
	bool mark = false;
	int64_t now = 0, least = 0;

	while (end && history->events[end - 1].op != GM_OP_ALLOC)
		end--;
	for (unsigned i = 0; i < end; i++) {
		const struct gm_event_record *event = &history->events[i];

		mark |= is_mark_of_program(doc, event);
		if (event->op == GM_OP_OOM && event->device == device && curve.count)
			curve.refusals[curve.count - 1] = true;
		if (event->device != device || event->level != telling_level(doc) ||
		    !gm_event_change(event))
			continue;
		now += gm_event_change(event);
		least = now < least ? now : least;
		curve.marks[curve.count] = mark;
		curve.refusals[curve.count] = false;
		curve.bytes[curve.count++] = (uint64_t)now;
		curve.marked |= mark;
		mark = false;
	}
	subtract_floor(&curve, least);
	return curve;
}

static void add_peak(struct steps *steps, uint64_t peak)
{
	if (steps->count == steps->room) {
		steps->room = steps->room ? 2 * steps->room : 256;
		steps->peaks = gm_realloc(steps->peaks, steps->room * sizeof(*steps->peaks));
	}
	steps->peaks[steps->count++] = peak;
}

static struct steps steps_between_marks(const struct curve *curve)
{
	struct steps steps = {0};
	uint64_t peak = 0;
	bool refused = false;

	for (unsigned i = 0; i < curve->count; i++) {
		if (curve->marks[i] && i && !refused)
			add_peak(&steps, peak);
		refused = curve->refusals[i] || (refused && !curve->marks[i]);
		peak = curve->marks[i] || curve->bytes[i] > peak ? curve->bytes[i] : peak;
	}
	if (!refused)
		add_peak(&steps, peak);
	return steps;
}

/* A step ends where no more than a tenth of the most is left above what stays. */
static struct steps steps_between_lows(const struct curve *curve)
{
	uint64_t high = 0, peak = 0;
	struct steps steps = {0};
	bool refused = false;

	for (unsigned i = 0; i < curve->count; i++)
		high = curve->bytes[i] > high ? curve->bytes[i] : high;
	for (unsigned i = 0; i < curve->count; i++) {
		refused |= curve->refusals[i];
		if (curve->bytes[i] > high / 10) {
			peak = curve->bytes[i] > peak ? curve->bytes[i] : peak;
			continue;
		}
		if (peak && !refused)
			add_peak(&steps, peak);
		peak = 0;
		refused = false;
	}
	return steps;
}

/* Alike are those that differ by `slack` or by little of themselves. */
static bool alike(uint64_t a, uint64_t b, uint64_t slack)
{
	uint64_t more = a > b ? a : b, less = a > b ? b : a;

	return more - less <= more / 100 * LIKE_PERCENT || more - less <= slack;
}

/*
 * The share of steps, in percent, that differ from the step one period before, for the period that
 * fits best: forward and backward passes, accumulation and evaluation return in the same order.
 */
static unsigned irregular_percent(const uint64_t *peaks, unsigned count, uint64_t slack)
{
	unsigned best = 100, period = count / 2 < MOST_PERIOD ? count / 2 : MOST_PERIOD;

	for (unsigned k = 1; k <= period; k++) {
		unsigned differ = 0, percent;

		for (unsigned i = k; i < count; i++)
			differ += !alike(peaks[i], peaks[i - k], slack);
		percent = 100 * differ / (count - k);
		best = percent < best ? percent : best;
	}
	return best;
}

static int compare_bytes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Counts the turns of the peaks from rising to falling or back: growth has none. */
static unsigned turns_of(const uint64_t *peaks, unsigned count, uint64_t slack)
{
	unsigned turns = 0;
	int before = 0;

	for (unsigned i = 1; i < count; i++) {
		int now = alike(peaks[i], peaks[i - 1], slack) ? 0
			  : peaks[i] > peaks[i - 1]	       ? 1
							       : -1;

		turns += now && before && now != before;
		before = now ? now : before;
	}
	return turns;
}

/* The transient site of which the most bytes at a time differ from call to call, GM_NO_SITE. */
static uint32_t varying_site(const struct gm_doc *doc, int device)
{
	uint32_t most = GM_NO_SITE;
	uint64_t widest = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site_figures *record = &doc->sites[i].record;
		uint64_t width;

		if (!is_told_by(doc, record, device) || record->frees < LEAST_STEPS / 2 ||
		    record->min_alloc_bytes > record->max_alloc_bytes ||
		    alike(record->min_alloc_bytes, record->max_alloc_bytes, 0))
			continue;
		width = record->max_alloc_bytes - record->min_alloc_bytes;
		if (width > widest) {
			widest = width;
			most = i;
		}
	}
	return most;
}

/*
 * True if the steps' peaks differ throughout, by a fair part of their range: not in a few of them,
 * and not in a period.
 */
static bool differ(const struct steps *steps, uint64_t range)
{
	unsigned late = steps->count / 3;

	return irregular_percent(steps->peaks, steps->count, range / 10) >= UNSTABLE_PERCENT &&
	       irregular_percent(steps->peaks + steps->count - late, late, range / 10) >=
		       UNSTABLE_PERCENT &&
	       turns_of(steps->peaks, steps->count, range / 10) >= steps->count / 8;
}

static bool much_higher(uint64_t high, uint64_t low)
{
	return high >= low + LEAST_BYTES && high - low >= high / 100 * UNSTABLE_PERCENT;
}

/*
 * Counts the steps that need much more than `usual` bytes, where they come now and then over the
 * whole run and in no period: long inputs among short ones. Else 0: an evaluation comes in a
 * period, and an algorithm is searched for once or twice.
 */
static unsigned rare_peaks(const struct steps *steps, uint64_t usual)
{
	uint64_t *gaps = gm_realloc(NULL, ((size_t)steps->count + 1) * sizeof(*gaps));
	unsigned count = 0, before = 0, thirds = 0;
	bool irregular;

	for (unsigned i = 0; i < steps->count; i++) {
		if (!much_higher(steps->peaks[i], usual))
			continue;
		gaps[count++] = i - before;
		before = i;
		thirds |= 1u << (3 * i / steps->count);
	}
	irregular =
		count > LEAST_RARE && irregular_percent(gaps + 1, count - 1, 0) >= UNSTABLE_PERCENT;
	free(gaps);
	return irregular && thirds == 7 ? count : 0;
}

static void judge_steps(struct gm_doc *doc, int device, struct steps steps)
{
	uint64_t low, high, most, *sorted;
	struct gm_finding *finding;
	uint32_t site = varying_site(doc, device);
	unsigned rare = 0;

	/* the first steps are a warm-up */
	if (steps.count < LEAST_STEPS + GM_WARMUP_WINDOWS || site == GM_NO_SITE)
		return;
	steps.peaks += GM_WARMUP_WINDOWS;
	steps.count -= GM_WARMUP_WINDOWS;
	/* A rise to the end is one step that did not end, or growth. */
	while (steps.count > 1 && steps.peaks[steps.count - 1] > steps.peaks[steps.count - 2])
		steps.count--;
	if (steps.count < LEAST_STEPS)
		return;
	sorted = gm_realloc(NULL, steps.count * sizeof(*sorted));
	memcpy(sorted, steps.peaks, steps.count * sizeof(*sorted));
	qsort(sorted, steps.count, sizeof(*sorted), compare_bytes);
	low = sorted[steps.count / 10];
	high = sorted[steps.count - 1 - steps.count / 10];
	most = sorted[steps.count - 1];
	free(sorted);
	if (!much_higher(high, low) || !differ(&steps, high - low)) {
		rare = rare_peaks(&steps, high);
		if (!rare)
			return;
	}
	finding = gm_finding_new(doc, "usage.unstable", GM_NOTE, device, (rare ? most : high) - low,
				 site);
	finding->title = gm_doc_printf(doc, "the peaks of the steps differ by %s",
				       gm_size(doc, finding->bytes));
	finding->evidence = gm_doc_printf(
		doc, "of %u steps eight in ten lie between %s and %s above what always stays",
		steps.count, gm_size(doc, low), gm_size(doc, high));
	if (rare)
		finding->evidence = gm_doc_printf(doc, "%s, and %u now and then reach up to %s",
						  finding->evidence, rare, gm_size(doc, most));
	gm_advise(doc, finding,
		  "what varies most is %s: if inputs differ in length, pad them to a few fixed "
		  "lengths (bucketing), for the highest peak decides what fits",
		  gm_stack_label(doc, doc->sites[site].stack));
}

static void judge_peaks(struct gm_doc *doc, const struct gm_history *history, int device)
{
	struct curve curve = curve_of(doc, history, device);
	struct steps steps =
		curve.marked ? steps_between_marks(&curve) : steps_between_lows(&curve);

	judge_steps(doc, device, steps);
	free(steps.peaks);
	free(curve.bytes);
	free(curve.marks);
	free(curve.refusals);
}

void gm_judge_usage(struct gm_doc *doc)
{
	struct gm_history history = {0};
	bool loaded = false;

	for (unsigned i = 0; i < doc->levels_count; i++) {
		const struct gm_level_record *level = &doc->levels[i];

		if (level->level != telling_level(doc) || level->device < 0)
			continue;
		judge_creep(doc, level->device);
		if (varying_site(doc, level->device) == GM_NO_SITE)
			continue;
		if (!loaded)
			history = gm_load_history(doc);
		loaded = true;
		judge_peaks(doc, &history, level->device);
	}
}
