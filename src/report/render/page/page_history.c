/*
 * The history of the page: what each event did to its site, so that the page can go
 * back from the end to any moment that the ring reaches.
 */
#include "report/history/events.h"
#include "report/render/json/json_values.h"
#include "report/render/page/internal.h"
#include "report/support/memory.h"
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

/* A mapping of physical memory: from which event to which. */
struct mapped {
	uint64_t key, serial; /* of the mapping; of the memory behind it */
	unsigned from, to;
};

static int compare_mapped(const void *a, const void *b)
{
	const struct mapped *x = a, *y = b;

	if (x->serial != y->serial)
		return x->serial < y->serial ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static int compare_keys(const void *a, const void *b)
{
	const struct mapped *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* The mappings of a history by the memory behind them. An unmapping ends the mapping of its address
 * that came before it. The caller frees the list. */
static struct mapped *find_mappings(const struct gm_history *history, unsigned *count)
{
	struct mapped *list = gm_realloc(NULL, (history->count + 1) * sizeof(*list));
	unsigned events = 0;

	*count = 0;
	for (unsigned i = 0; i < history->count; i++)
		if (history->events[i].op == GM_OP_MAP || history->events[i].op == GM_OP_UNMAP)
			list[events++] =
				(struct mapped){history->events[i].key, history->events[i].serial,
						i, history->count};
	if (events)
		qsort(list, events, sizeof(*list), compare_keys);
	for (unsigned i = 0; i < events; i++) {
		if (history->events[list[i].from].op == GM_OP_MAP)
			list[(*count)++] = list[i];
		else if (*count && list[*count - 1].key == list[i].key)
			list[*count - 1].to = list[i].from;
	}
	if (*count)
		qsort(list, *count, sizeof(*list), compare_mapped);
	return list;
}

/* True when physical memory was released while it was mapped: it is then held until it is unmapped,
 * which no event of its own says. */
static bool released_while_mapped(const struct gm_history *history)
{
	unsigned count, low, high;
	struct mapped *list = find_mappings(history, &count);
	bool found = false;

	for (unsigned i = 0; i < history->count && !found; i++) {
		const struct gm_event_record *event = &history->events[i];

		if (event->op != GM_OP_FREE || event->kind != GM_KIND_VMM || !event->serial)
			continue;
		for (low = 0, high = count; low < high;) {
			unsigned middle = low + (high - low) / 2;

			if (list[middle].serial < event->serial)
				low = middle + 1;
			else
				high = middle;
		}
		for (; low < count && list[low].serial == event->serial && !found; low++)
			found = list[low].from < i && i < list[low].to;
	}
	free(list);
	return found;
}

static struct steps find_steps(struct gm_doc *doc, const struct gm_history *history)
{
	struct steps steps = {
		.list = gm_zone_alloc(&doc->zone, history->count, sizeof(*steps.list))};
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
	else if (released_while_mapped(history))
		steps.reason = "memory was released while it was mapped, and held on";
	else if (!history->complete)
		steps.reason = doc->journal
				       ? "the page holds the last events only; --at tells of others"
				       : "older events have left the ring";
	else if (first > 0 || !begins_empty(doc, &steps))
		steps.reason = "some events and figures do not agree";
	if (steps.reason)
		steps.from_ns = first ? steps.list[first - 1].time_ns
				      : (steps.count ? steps.list[0].time_ns : GM_NO_BYTES);
	if (steps.reason && (history->complete || released_while_mapped(history)))
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
	struct gm_history history = gm_load_last_history(doc, GM_PAGE_EVENTS);
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
