/*
 * usage.creeping: the floor of a device's total rises over the run. usage.unstable: the peaks of
 * the windows differ. Both work on the timeline's points, gathered into a few windows.
 */
#include "report/judge/findings.h"
#include "report/judge/growth.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"

#define WINDOWS		 12
#define LEAST_BYTES	 (16ull << 20) /* smaller changes are not worth a line */
#define UNSTABLE_PERCENT 20

/* Gathers a timeline's closed points into at most WINDOWS windows; returns how many. */
static unsigned gather(const struct gm_timeline_record *line, struct gm_window *windows)
{
	unsigned closed = line->points ? line->points - 1 : 0;
	unsigned each = closed / WINDOWS ? closed / WINDOWS : 1, count = 0;

	for (unsigned i = 0; i + each <= closed && count < WINDOWS; i += each) {
		struct gm_window window = {UINT64_MAX, 0, 0};

		for (unsigned k = i; k < i + each; k++) {
			if (line->min_bytes[k] < window.min_bytes)
				window.min_bytes = line->min_bytes[k];
			if (line->max_bytes[k] > window.max_bytes)
				window.max_bytes = line->max_bytes[k];
			window.last_bytes = line->last_bytes[k];
		}
		windows[count++] = window;
	}
	return count;
}

/* The growing site that carries most of a rise on a device, GM_NO_SITE. */
static uint32_t carrier(const struct gm_doc *doc, int device)
{
	uint32_t most = GM_NO_SITE;

	for (unsigned i = 0; i < doc->sites_count; i++)
		if (doc->sites[i].record.device == device && doc->sites[i].verdict == GM_GROW &&
		    (most == GM_NO_SITE ||
		     doc->sites[i].record.live_bytes > doc->sites[most].record.live_bytes))
			most = i;
	return most;
}

static void judge_creep(struct gm_doc *doc, int device, const struct gm_window *windows,
			unsigned count)
{
	struct gm_growth_result result = gm_judge_growth(windows, NULL, count, GM_WARMUP_WINDOWS);
	uint64_t rise = result.last_bytes - result.first_bytes;
	struct gm_finding *finding;
	uint32_t site;

	if (result.growth != GM_GROWTH_RISES || rise < LEAST_BYTES)
		return;
	site = carrier(doc, device);
	finding = gm_finding_new(doc, "usage.creeping", GM_WARNING, device, rise, site);
	finding->title = gm_doc_printf(doc, "the floor of the device's usage rose by %s",
				       gm_size(doc, rise));
	finding->evidence = gm_doc_printf(
		doc, "from %s to %s, in %u of %u steps", gm_size(doc, result.first_bytes),
		gm_size(doc, result.last_bytes), result.rises, result.windows - 1);
	if (site != GM_NO_SITE)
		gm_advise(doc, finding, "the rise is carried by %s",
			  gm_stack_label(doc, doc->sites[site].stack));
	else
		gm_advise(doc, finding,
			  "no single site carries the rise: compare two moments by marks, "
			  "gpumem-report sites --sort live");
}

static void judge_peaks(struct gm_doc *doc, int device, const struct gm_window *windows,
			unsigned count)
{
	uint64_t low = UINT64_MAX, high = 0;
	struct gm_finding *finding;

	if (count < GM_WARMUP_WINDOWS + GM_GROWTH_LEAST_WINDOWS)
		return;
	for (unsigned i = GM_WARMUP_WINDOWS; i < count; i++) {
		low = windows[i].max_bytes < low ? windows[i].max_bytes : low;
		high = windows[i].max_bytes > high ? windows[i].max_bytes : high;
	}
	/* A rise is growth, told elsewhere; unstable is what goes up and down. */
	if (high - low < LEAST_BYTES || high - low < high / 100 * UNSTABLE_PERCENT ||
	    gm_judge_growth(windows, NULL, count, GM_WARMUP_WINDOWS).growth == GM_GROWTH_RISES ||
	    windows[count - 1].max_bytes == high || windows[GM_WARMUP_WINDOWS].max_bytes == high)
		return;
	finding = gm_finding_new(doc, "usage.unstable", GM_NOTE, device, high - low, GM_NO_SITE);
	finding->title =
		gm_doc_printf(doc, "the peaks over the run differ by %s", gm_size(doc, high - low));
	finding->evidence = gm_doc_printf(doc, "between %s and %s after the warm-up",
					  gm_size(doc, low), gm_size(doc, high));
	gm_advise(doc, finding,
		  "if inputs differ in length, pad them to a few fixed lengths (bucketing): "
		  "the highest peak decides what fits");
}

void gm_judge_usage(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->timeline_count; i++) {
		const struct gm_timeline_record *line = &doc->timeline[i];
		struct gm_window windows[WINDOWS];
		unsigned count;

		/* With PyTorch the driver level is its cache: its blocks tell. */
		if (line->series != (doc->torch ? GM_SERIES_TORCH_ALLOCATED : GM_SERIES_TRACKED) ||
		    line->device < 0)
			continue;
		count = gather(line, windows);
		judge_creep(doc, line->device, windows, count);
		judge_peaks(doc, line->device, windows, count);
	}
}
