/*
 * Growth that no site shows alone: one buffer that is replaced by a larger one at two places in
 * turn (double buffering) is nothing at either place half of the time. What the places have
 * together rises all the same; they are found by the function that both were called from. Likewise
 * blocks that are copied from one place to another now and then, as the elements of a container are
 * when it gets longer: each place is emptied again, and all together they hold ever more. See
 * internal.h.
 */
#include "report/judge/growth.h"
#include "report/judge/internal.h"
#include "report/stacks/labels.h"
#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES                                                                                \
	(1ull << 20)   /* a smaller rise is not worth a verdict that rests on several sites */
#define MOST_BLOCKS  8 /* a buffer that is replaced; a loop's working memory has many */
#define MOST_SITES   16
#define MANY_WINDOWS 9 /* of fewer, chance is not told from growth over many blocks */
#define MOVED_PART   8 /* a place that lost an eighth of the rise has been emptied into another */

enum together {
	AT_ENDS,    /* one buffer, by what is held at the windows' ends */
	MOST_HELD,  /* one buffer, by the most that is held in each window */
	MANY_BLOCKS /* by the floor of what all hold: they are copied from one to another */
};

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

/* Memory that comes and goes, and does not grow by itself; of one buffer there are few blocks. */
static bool is_candidate(const struct gm_doc *doc, const struct gm_site *site,
			 const struct gm_judged_windows *judged, enum together how)
{
	if (!site->stack || site->verdict == GM_GROW || site->verdict == GM_CACHED ||
	    !site->record.frees)
		return false;
	if (how == MANY_BLOCKS)
		return site->work_count > 0 && !site->one_pass;
	return site->work_count <= MOST_BLOCKS &&
	       rises_where_held(doc, site, judged, how == MOST_HELD);
}

static unsigned list_calls(const struct gm_doc *doc, const struct gm_judged_windows *judged,
			   struct call *calls, enum together how)
{
	unsigned count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_stack *stack = doc->sites[i].stack;

		if (!is_candidate(doc, &doc->sites[i], judged, how))
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

/* The most that a site of many blocks lost from one window's end to the next. */
static uint64_t most_lost(const struct gm_doc *doc, const struct gm_site *site,
			  const struct gm_judged_windows *judged)
{
	uint64_t most = 0, before = gm_recorded_window(judged, doc, site, 0).last_bytes;

	for (unsigned w = 1; w < judged->open; w++) {
		uint64_t bytes = gm_recorded_window(judged, doc, site, w).last_bytes;

		if (bytes + most < before)
			most = before - bytes;
		before = bytes;
	}
	return site->work_count > MOST_BLOCKS ? most : 0;
}

/*
 * True if the sites, two of which hold many blocks, hold ever more together, though one of them was
 * emptied for a good part of that. The floor of the sum is taken from the history, because the
 * recorded windows have each site's alone.
 */
static bool moves_and_grows(struct gm_doc *doc, const struct group *group,
			    const struct gm_judged_windows *judged, unsigned warmup,
			    uint64_t *bytes)
{
	struct gm_judged_windows together;
	struct gm_growth_result result;
	unsigned stores = 0;
	uint64_t lost = 0, rise;

	*bytes = 0;
	for (unsigned i = 0; i < group->count; i++) {
		const struct gm_site *site = &doc->sites[group->sites[i]];
		uint64_t here = most_lost(doc, site, judged);

		*bytes += site->work_bytes;
		stores += site->work_count > MOST_BLOCKS;
		lost = here > lost ? here : lost;
	}
	if (stores < 2 || lost < LEAST_BYTES / MOVED_PART ||
	    !gm_count_windows_of_all(doc, group->sites, group->count, &together))
		return false;
	result = gm_judge_growth(together.of[0], NULL, together.open, warmup);
	rise = result.last_bytes - result.first_bytes;
	return result.growth == GM_GROWTH_RISES && result.windows >= MANY_WINDOWS &&
	       rise >= LEAST_BYTES && lost >= rise / MOVED_PART &&
	       *bytes >= result.first_bytes + rise / 2;
}

static void mark(struct gm_doc *doc, const struct group *group, uint64_t bytes, enum together how)
{
	const char *why =
		how == MANY_BLOCKS
			? "blocks move between %u sites, which hold ever more together, up to %s"
			: "%u sites replace one buffer by a larger one in turn, up to %s";

	why = gm_doc_printf(doc, why, group->count, gm_size(doc, bytes));
	for (unsigned i = 0; i < group->count; i++) {
		struct gm_site *site = &doc->sites[group->sites[i]];

		if (how == MANY_BLOCKS && site->work_count <= MOST_BLOCKS)
			continue; /* working memory beside them */
		site->verdict = GM_GROW;
		site->why = why;
	}
}

static bool grow_together(struct gm_doc *doc, const struct group *group,
			  const struct gm_judged_windows *judged, unsigned warmup,
			  enum together how, uint64_t *bytes)
{
	for (unsigned i = 0; i < group->count; i++)
		if (doc->sites[group->sites[i]].verdict == GM_GROW)
			return false;
	return how == MANY_BLOCKS
		       ? moves_and_grows(doc, group, judged, warmup, bytes)
		       : group_grows(doc, group, judged, warmup, how == MOST_HELD, bytes);
}

static void judge_groups(struct gm_doc *doc, const struct gm_judged_windows *judged,
			 unsigned warmup, enum together how)
{
	unsigned count = list_calls(doc, judged, NULL, how), first = 0;
	struct call *calls = gm_realloc(NULL, ((size_t)count + 1) * sizeof(*calls));
	uint64_t bytes;

	list_calls(doc, judged, calls, how);
	if (count)
		qsort(calls, count, sizeof(*calls), compare_calls);
	for (unsigned i = 1; i <= count; i++) {
		struct group group;

		if (i < count && calls[i].function == calls[first].function)
			continue;
		group = group_from(doc, calls + first, i - first);
		if (group.count > 1 && grow_together(doc, &group, judged, warmup, how, &bytes))
			mark(doc, &group, bytes, how);
		first = i;
	}
	free(calls);
}

void gm_judge_callers(struct gm_doc *doc, const struct gm_judged_windows *judged, unsigned warmup)
{
	judge_groups(doc, judged, warmup, AT_ENDS);
	judge_groups(doc, judged, warmup, MOST_HELD);
	judge_groups(doc, judged, warmup, MANY_BLOCKS);
}
