/*
 * The history of the page: what each event of the ring did to its site, so that the page can go
 * back from the end to any moment that the ring reaches.
 */
#include "report/render/page_parts.h"
#include "report/history.h"
#include "report/memory.h"
#include "report/render/json.h"
#include <stdlib.h>

struct step {
	uint64_t time_ns;
	uint32_t site;
	int64_t change; /* of the site's live bytes */
};

struct steps {
	struct step *list;
	unsigned count;
	uint64_t from_ns;   /* the figures can be told from here on */
	const char *reason; /* why not from the start; NULL: they can */
};

static bool frees(const struct gm_event_record *event)
{
	return event->op == GM_OP_FREE || event->op == GM_OP_IMPLICIT_FREE;
}

/* The change of a site by an event; sites also count what is not owned. */
static int64_t change_of(const struct gm_event_record *event)
{
	if (event->bytes > INT64_MAX)
		return 0;
	return event->op == GM_OP_ALLOC		    ? (int64_t)event->bytes
	       : frees(event) && event->serial != 0 ? -(int64_t)event->bytes
						    : 0;
}

/* Goes back from the live figures: a step that does not fit them, or of which the size is not
 * known, is as far as it goes. */
static unsigned reach(const struct gm_doc *doc, const struct steps *steps)
{
	uint64_t *live = gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*live));
	unsigned first = steps->count;

	for (unsigned i = 0; i < doc->sites_count; i++)
		live[i] = doc->sites[i].record.live_bytes;
	for (; first > 0; first--) {
		const struct step *step = &steps->list[first - 1];

		if (step->change == 0 ||
		    (step->change > 0 && live[step->site] < (uint64_t)step->change))
			break;
		live[step->site] -= (uint64_t)step->change;
	}
	free(live);
	return first;
}

/* True when nothing was live before the first event, as it must be if none is missing. */
static bool begins_empty(const struct gm_doc *doc, const struct steps *steps)
{
	int64_t *sum = calloc(doc->sites_count + 1, sizeof(*sum));
	bool empty = sum != NULL;

	for (unsigned i = 0; empty && i < steps->count; i++)
		sum[steps->list[i].site] += steps->list[i].change;
	for (unsigned i = 0; empty && i < doc->sites_count; i++)
		empty = sum[i] == (int64_t)doc->sites[i].record.live_bytes;
	free(sum);
	return empty;
}

static struct steps find_steps(struct gm_doc *doc, const struct gm_history *history)
{
	struct steps steps = {
		.list = gm_arena_alloc(&doc->arena, history->count, sizeof(*steps.list))};
	unsigned first;

	for (unsigned i = 0; i < history->count; i++) {
		const struct gm_event_record *event = &history->events[i];

		if (event->site < doc->sites_count &&
		    (event->op == GM_OP_ALLOC || (frees(event) && event->serial)))
			steps.list[steps.count++] =
				(struct step){event->time_ns, event->site, change_of(event)};
	}
	first = reach(doc, &steps);
	if (!history->count)
		steps.reason = "the file keeps no events";
	else if (!history->complete)
		steps.reason = "older events have left the ring";
	else if (first > 0 || !begins_empty(doc, &steps))
		steps.reason = "some events and figures do not agree";
	if (steps.reason)
		steps.from_ns = first ? steps.list[first - 1].time_ns
				      : (steps.count ? steps.list[0].time_ns : GM_NO_BYTES);
	if (steps.reason && history->complete)
		steps.from_ns = GM_NO_BYTES; /* not known which of them is wrong */
	steps.list += first;
	steps.count -= first;
	return steps;
}

static json_t *failures(struct gm_doc *doc, const int *numbers, const struct gm_history *history)
{
	json_t *times = json_array(), *sites = json_array(), *bytes = json_array();

	for (unsigned i = 0; i < history->count; i++) {
		const struct gm_event_record *event = &history->events[i];

		if (event->op != GM_OP_ALLOC_FAILED)
			continue;
		json_array_append_new(times, json_real((double)event->time_ns / 1e9));
		json_array_append_new(
			sites,
			json_integer(event->site < doc->sites_count ? numbers[event->site] : -1));
		json_array_append_new(bytes, gm_json_bytes(event->bytes));
	}
	return json_pack("{s:o, s:o, s:o}", "time_s", times, "site", sites, "bytes", bytes);
}

json_t *gm_page_history(struct gm_doc *doc, const int *numbers)
{
	struct gm_history history = gm_load_history(doc);
	struct steps steps = find_steps(doc, &history);
	json_t *times = json_array(), *sites = json_array(), *bytes = json_array();
	uint64_t before = 0;

	for (unsigned i = 0; i < steps.count && steps.from_ns != GM_NO_BYTES; i++) {
		const struct step *step = &steps.list[i];
		uint64_t now = step->time_ns > before ? step->time_ns : before;

		json_array_append_new(times, gm_json_bytes(now - before));
		json_array_append_new(sites, json_integer(numbers[step->site]));
		json_array_append_new(bytes, json_integer(step->change));
		before = now;
	}
	return json_pack(
		"{s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "from_s",
		steps.from_ns == GM_NO_BYTES ? json_null() : json_real((double)steps.from_ns / 1e9),
		"complete", steps.reason == NULL, "reason", gm_json_string(steps.reason), "dt_ns",
		times, "site", sites, "bytes", bytes, "failures", failures(doc, numbers, &history));
}
