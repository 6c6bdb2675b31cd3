/*
 * Growth that no site shows alone: one buffer that is replaced by a larger one at two places in
 * turn (double buffering) is nothing at either place half of the time. What the places have
 * together rises all the same; they are found by the function that both were called from. See
 * internal.h.
 */
#include "report/judge/growth.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"
#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES                                                                                \
	(1ull << 20)  /* a smaller rise is not worth a verdict that rests on several sites */
#define MOST_BLOCKS 8 /* a buffer that is replaced; a loop's working memory has many */
#define MOST_SITES  16

/* The fact that a function is in the stack of a site. */
struct call {
	uint64_t function;
	uint32_t site;
};

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211u; /* FNV-1a */
	return hash;
}

/* Equal for the same function; where its name is not known, for the same address in it. */
static uint64_t function_of(const struct gm_frame *frame)
{
	uint64_t hash =
		hash_text(14695981039346656037u, frame->python ? frame->file : frame->module);

	return frame->function ? hash_text(hash, frame->function)
			       : (hash ^ frame->offset) * 1099511628211u;
}

static int compare_calls(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/*
 * Returns what a site held at a window's end, or, with `most`, the most that it held in the window:
 * of a buffer that is freed before its successor is allocated nothing may be there at any end.
 */
static uint64_t held_in(struct gm_window window, bool most)
{
	return most ? window.max_bytes : window.last_bytes;
}

/* True if the site's bytes, where it held anything, never fell and rose at least once. */
static bool rises_where_held(const struct gm_doc *doc, const struct gm_site *site,
			     const struct gm_judged_windows *judged, bool most)
{
	uint64_t before = 0;
	unsigned rises = 0;

	for (unsigned w = 0; w <= judged->open; w++) {
		uint64_t now = held_in(gm_recorded_window(judged, doc, site, w), most);

		if (!now)
			continue;
		if (now < before)
			return false;
		rises += before && now > before;
		before = now;
	}
	return rises > 0;
}

/* Memory that comes and goes, of few blocks, and does not grow by itself. */
static bool is_candidate(const struct gm_doc *doc, const struct gm_site *site,
			 const struct gm_judged_windows *judged, bool most)
{
	return site->stack && site->verdict != GM_GROW && site->verdict != GM_CACHED &&
	       site->record.frees && site->work_count <= MOST_BLOCKS &&
	       rises_where_held(doc, site, judged, most);
}

static unsigned list_calls(const struct gm_doc *doc, const struct gm_judged_windows *judged,
			   struct call *calls, bool most)
{
	unsigned count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_stack *stack = doc->sites[i].stack;

		if (!is_candidate(doc, &doc->sites[i], judged, most))
			continue;
		for (unsigned k = 0; k < stack->count; k++) {
			const struct gm_frame *frame = gm_stack_frame(stack, k);

			if (!frame->plumbing && !frame->toolkit) {
				if (calls)
					calls[count] = (struct call){function_of(frame), i};
				count++;
			}
		}
	}
	return count;
}

/* The sites of one function, each once, of one level, kind and device. */
struct group {
	uint32_t sites[MOST_SITES];
	unsigned count;
};

static bool alike(const struct gm_site_figures *a, const struct gm_site_figures *b)
{
	return a->level == b->level && a->kind == b->kind && a->device == b->device;
}

static struct group group_from(const struct gm_doc *doc, const struct call *calls, unsigned count)
{
	struct group group = {.count = 0};

	for (unsigned i = 0; i < count; i++) {
		uint32_t site = calls[i].site;

		if (i && calls[i - 1].site == site)
			continue;
		if (group.count == MOST_SITES ||
		    (group.count &&
		     !alike(&doc->sites[group.sites[0]].record, &doc->sites[site].record)))
			return (struct group){.count = 0};
		group.sites[group.count++] = site;
	}
	return group;
}

static bool group_grows(struct gm_doc *doc, const struct group *group,
			const struct gm_judged_windows *judged, unsigned warmup, bool most,
			uint64_t *bytes)
{
	struct gm_window windows[GM_WINDOWS] = {{0}};
	unsigned last = judged->open;
	uint64_t blocks = 0;

	*bytes = 0;
	for (unsigned i = 0; i < group->count; i++) {
		const struct gm_site *site = &doc->sites[group->sites[i]];

		for (unsigned w = 0; w < last; w++) {
			uint64_t held = held_in(gm_recorded_window(judged, doc, site, w), most);

			if (!most)
				windows[w].last_bytes += held;
			else if (held > windows[w].last_bytes)
				windows[w].last_bytes = held;
		}
		*bytes += site->work_bytes;
		blocks += site->work_count;
	}
	windows[last].last_bytes = *bytes;
	for (unsigned w = 0; w <= last; w++)
		windows[w].min_bytes = windows[w].max_bytes = windows[w].last_bytes;
	return blocks <= (most ? 1 : MOST_BLOCKS) && last + 1 > warmup &&
	       gm_growth_steady(windows + warmup, last + 1 - warmup) &&
	       windows[last].last_bytes - windows[warmup].last_bytes >= LEAST_BYTES &&
	       (!most || gm_replaced_at_once(doc, group->sites, group->count));
}

static void mark(struct gm_doc *doc, const struct group *group, uint64_t bytes)
{
	for (unsigned i = 0; i < group->count; i++) {
		struct gm_site *site = &doc->sites[group->sites[i]];

		site->verdict = GM_GROW;
		site->why = gm_doc_printf(
			doc, "%u sites replace one buffer by a larger one in turn, up to %s",
			group->count, gm_size(doc, bytes));
	}
}

static void judge_groups(struct gm_doc *doc, const struct gm_judged_windows *judged,
			 unsigned warmup, bool most)
{
	unsigned count = list_calls(doc, judged, NULL, most), first = 0;
	struct call *calls = gm_realloc(NULL, ((size_t)count + 1) * sizeof(*calls));
	uint64_t bytes;

	list_calls(doc, judged, calls, most);
	if (count)
		qsort(calls, count, sizeof(*calls), compare_calls);
	for (unsigned i = 1; i <= count; i++) {
		struct group group;

		if (i < count && calls[i].function == calls[first].function)
			continue;
		group = group_from(doc, calls + first, i - first);
		if (group.count > 1 && doc->sites[group.sites[0]].verdict != GM_GROW &&
		    group_grows(doc, &group, judged, warmup, most, &bytes))
			mark(doc, &group, bytes);
		first = i;
	}
	free(calls);
}

void gm_judge_callers(struct gm_doc *doc, const struct gm_judged_windows *judged, unsigned warmup)
{
	judge_groups(doc, judged, warmup, false);
	judge_groups(doc, judged, warmup, true);
}
