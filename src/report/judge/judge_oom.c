/*
 * Out-of-memory events: why it failed (`verdict`), and a finding for each. Facts and advice are
 * next door, see internal.h.
 */
#include "report/judge/findings.h"
#include "report/judge/internal.h"
#include "report/stacks/classify.h"
#include "report/stacks/labels.h"
#include <string.h>

/* a + b where figures may be unknown (then counted as nothing), without overflow. */
static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	a = a == GM_NO_BYTES ? 0 : a;
	b = b == GM_NO_BYTES ? 0 : b;
	return __builtin_add_overflow(a, b, &sum) ? GM_NO_BYTES - 1 : sum;
}

/* Idle memory is a cause where it is a fair share of the reserve: some is idle near exhaustion
 * always. */
#define FAIR_PERCENT 10

static bool is_fair(uint64_t idle, uint64_t reserved)
{
	return idle && reserved != GM_NO_BYTES && idle / FAIR_PERCENT >= reserved / 100;
}

/* A driver does not hand out the last part of what it says is free: page tables take of it. */
#define MARGIN 64

#define LEAST_NEED (2ull << 20) /* of a call whose need is not known: a page */

/*
 * Returns the bytes that the driver would have had to find: for a block of PyTorch's those of its
 * segment. For a call that allocates nothing by name they are not known; a context takes as much as
 * the first did.
 */
static uint64_t driver_need(const struct gm_doc *doc, const struct gm_oom *oom)
{
	const struct gm_oom_record *record = &oom->record;
	const struct gm_device *device = gm_doc_device(doc, record->device);

	if (record->driver_bytes || record->requested_bytes)
		return record->driver_bytes ? record->driver_bytes : record->requested_bytes;
	if (device && gm_makes_context(oom->api) && device->record.context_bytes != GM_NO_BYTES)
		return device->record.context_bytes;
	return LEAST_NEED;
}

/*
 * A pool that has a maximum refuses what would exceed it. PyTorch's idle memory counts where it,
 * with what the device has free, would have served the request, and is a fair share of the reserve;
 * a pool's likewise.
 */
static bool is_fragmented(const struct gm_doc *doc, const struct gm_oom *oom, uint64_t unused)
{
	const struct gm_oom_record *record = &oom->record;
	uint64_t need = driver_need(doc, oom), idle = 0, leaked;
	uint64_t torch = gm_oom_common_idle(record);
	uint64_t pool = gm_oom_idle(record->pool_reserved_bytes, record->pool_used_bytes);

	if (is_fair(torch, record->torch_reserved_bytes))
		idle = torch;
	if (is_fair(pool, record->pool_reserved_bytes))
		idle = add(idle, pool);
	/* Some idle memory beside a leak that holds more of it is the leak's doing. */
	return idle && unused < need && add(unused, idle) >= need &&
	       !(gm_oom_leak(doc, oom, &leaked) != GM_NO_SITE && leaked > idle);
}

/*
 * Returns the bytes that other processes hold: by their list, or the bytes that are in use and are
 * not this process's. A pretended device has none.
 */
static uint64_t others_of(const struct gm_oom_record *record)
{
	uint64_t listed = gm_oom_idle(record->others_bytes, 0);
	uint64_t used = gm_oom_idle(record->total_bytes, record->free_bytes);
	uint64_t rest = record->own_bytes ? gm_oom_idle(used, record->own_bytes) : 0;

	if (record->injected)
		return 0;
	return listed > rest ? listed : rest;
}

/*
 * True if the request exceeds the limit that MPS sets. The memory that CUDA itself needs for a
 * context counts as well, as far as it is known.
 */
static bool exceeds_mps_limit(struct gm_doc *doc, const struct gm_oom_record *record, uint64_t need)
{
	uint64_t limit = gm_oom_mps_limit(doc, record->device);
	const struct gm_device *device = gm_doc_device(doc, record->device);
	uint64_t used =
		add(record->tracked_physical_bytes, device ? device->record.context_bytes : 0);

	return limit != GM_NO_BYTES && add(used, need) > limit;
}

static const char *verdict(struct gm_doc *doc, const struct gm_oom *oom)
{
	const struct gm_oom_record *record = &oom->record;
	uint64_t unused = gm_oom_free_bytes(doc, record), need = driver_need(doc, oom);

	if (record->verdict == GM_OOM_HOST || record->device == GM_HOST)
		return "host";
	/*
	 * CUDA would have served a call that GPUMEMTRACE_FAIL refuses; a pretended capacity is a
	 * device's.
	 */
	if (record->verdict == GM_OOM_LIMIT || (record->injected && unused >= need) ||
	    (record->pool_max_bytes &&
	     add(record->pool_live_bytes, need) > record->pool_max_bytes) ||
	    (unused >= need && exceeds_mps_limit(doc, record, need)))
		return "limit";
	if (gm_oom_idle(record->pending_free_bytes, 0) &&
	    add(unused, record->pending_free_bytes) >= need)
		return "pending-frees";
	if (is_fragmented(doc, oom, unused))
		return "fragmented";
	if (add(unused, others_of(record)) >= need && unused < need)
		return "other-processes";
	return record->free_bytes != GM_NO_BYTES && unused >= add(need, need / MARGIN)
		       ? "refused"
		       : "exhausted";
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_line(const struct gm_frame *x, const struct gm_frame *y)
{
	return same_text(x->function, y->function) && same_text(x->file, y->file) &&
	       same_text(x->module, y->module) && x->line == y->line &&
	       (x->line || x->offset == y->offset);
}

#define LEAST_TRIES 3 /* of a search */

/*
 * Returns how many events from `first` on are one search for the largest batch: at one line,
 * whoever called it, each for no more than the one before it. 0: they are none.
 */
static unsigned tries_from(const struct gm_doc *doc, unsigned first)
{
	const struct gm_oom *from = &doc->ooms[first];
	const struct gm_frame *line = gm_stack_label_frame(from->stack), *other;
	unsigned i = first + 1;

	for (; i < doc->ooms_count; i++) {
		const struct gm_oom *oom = &doc->ooms[i];

		other = gm_stack_label_frame(oom->stack);
		if (oom->record.device != from->record.device || !oom->record.requested_bytes ||
		    oom->record.requested_bytes > oom[-1].record.requested_bytes || !line ||
		    !other || !same_line(line, other))
			break;
	}
	return i - first >= LEAST_TRIES && doc->ooms[i - 1].record.requested_bytes <
						   from->record.requested_bytes
		       ? i - first
		       : 0;
}

/*
 * In a search the batch is too large. Smaller tries find the blocks of larger ones in their way and
 * may fail where idle memory would have served this one request, but the step that asked needs more
 * than that.
 */
static void judge_searches(struct gm_doc *doc)
{
	unsigned tries;

	for (unsigned i = 0; i < doc->ooms_count; i += tries ? tries : 1) {
		tries = tries_from(doc, i);
		if (strcmp(doc->ooms[i].verdict, "exhausted") != 0)
			continue;
		for (unsigned k = i; k < i + tries; k++)
			if (strcmp(doc->ooms[k].verdict, "fragmented") == 0 ||
			    strcmp(doc->ooms[k].verdict, "refused") == 0)
				doc->ooms[k].verdict = "exhausted";
	}
}

static const char *torch_reasons(struct gm_doc *doc, const struct gm_oom_record *record,
				 const char *text)
{
	uint64_t reserved = record->torch_reserved_bytes;
	uint64_t holes = gm_oom_idle(reserved, record->torch_allocated_bytes);

	if (reserved == GM_NO_BYTES)
		return text;
	text = gm_doc_printf(doc, "%s, PyTorch reserved %s of which %s are allocated", text,
			     gm_size(doc, reserved), gm_size(doc, record->torch_allocated_bytes));
	if (holes / 100 >= reserved / 10000)
		text = gm_doc_printf(doc, "%s (fragmentation %.0f %%)", text,
				     100.0 * (double)holes / (double)reserved);
	if (record->torch_private_idle_bytes)
		text = gm_doc_printf(doc, "%s, %s of it idle in private pools", text,
				     gm_size(doc, record->torch_private_idle_bytes));
	if (record->torch_largest_hole_bytes != GM_NO_BYTES)
		text = gm_doc_printf(doc, "%s, its largest hole is %s", text,
				     gm_size(doc, record->torch_largest_hole_bytes));
	return text;
}

static const char *reasons(struct gm_doc *doc, const struct gm_oom *oom)
{
	const struct gm_oom_record *record = &oom->record;
	const char *text = record->requested_bytes
				   ? gm_doc_printf(doc, "asked for %s",
						   gm_size(doc, record->requested_bytes))
				   : "the call does not say how much memory it needs";

	if (record->driver_bytes && record->driver_bytes != record->requested_bytes)
		text = gm_doc_printf(doc, "%s, for which the driver was asked for %s", text,
				     gm_size(doc, record->driver_bytes));
	if (record->free_bytes != GM_NO_BYTES)
		text = gm_doc_printf(doc, "%s, %s of %s free", text,
				     gm_size(doc, record->free_bytes),
				     gm_size(doc, record->total_bytes));
	text = gm_doc_printf(doc, "%s, %s tracked", text, gm_size(doc, record->tracked_bytes));
	text = torch_reasons(doc, record, text);
	if (gm_oom_idle(record->pending_free_bytes, 0))
		text = gm_doc_printf(doc, "%s, %s of frees pending", text,
				     gm_size(doc, record->pending_free_bytes));
	if (others_of(record) && gm_oom_idle(record->others_bytes, 0))
		text = gm_doc_printf(doc, "%s, other processes %s", text, gm_oom_others(doc, oom));
	if (record->attempts > 1)
		text = gm_doc_printf(doc, "%s, tried %u times", text, record->attempts);
	return text;
}

/* Events of one place: a search for the largest batch is one story, not thirty. */
struct story {
	const char *place;
	const struct gm_oom *first, *last;
	const char *causes; /* "exhausted and fragmented" */
	uint64_t most_bytes, least_bytes;
	unsigned events;
};

/*
 * True if two stacks pass the same lines of the program, whatever a package or a library did in
 * between, and by whichever names labels tell them from others.
 */
static bool same_lines(const struct gm_stack *a, const struct gm_stack *b)
{
	const struct gm_frame *x = gm_stack_label_frame(a), *y = gm_stack_label_frame(b);
	unsigned i = gm_stack_label_index(a), k = gm_stack_label_index(b);

	if (a == b)
		return true;
	if (!x || !y)
		return false;
	while (x && y) {
		if (!same_line(x, y))
			return false;
		x = gm_stack_next_own(a, &i);
		y = gm_stack_next_own(b, &k);
	}
	return !x && !y;
}

static bool same_story(const struct story *story, const struct gm_oom *oom)
{
	return same_lines(story->first->stack, oom->stack) &&
	       story->first->record.device == oom->record.device &&
	       !story->first->api == !oom->api &&
	       (!oom->api || strcmp(story->first->api, oom->api) == 0);
}

static void add_to_story(struct gm_doc *doc, struct story **stories, unsigned *count,
			 const struct gm_oom *oom)
{
	const char *place = gm_stack_label(doc, oom->stack);
	uint64_t bytes = oom->record.requested_bytes;
	struct story *story = NULL;

	for (unsigned i = 0; i < *count && !story; i++)
		if (same_story(&(*stories)[i], oom))
			story = &(*stories)[i];
	if (!story) {
		story = gm_zone_push(&doc->zone, stories, count, sizeof(*story));
		*story = (struct story){place, oom, oom, oom->verdict, bytes, bytes, 0};
	}
	if (!strstr(story->causes, oom->verdict))
		story->causes = gm_doc_printf(doc, "%s and %s", story->causes, oom->verdict);
	story->last = oom;
	story->events++;
	if (bytes > story->most_bytes)
		story->most_bytes = bytes;
	if (bytes < story->least_bytes)
		story->least_bytes = bytes;
}

/* The site of the request: its stack leads on from the innermost function. GM_NO_SITE if there is
 * none. */
static uint32_t site_of(const struct gm_doc *doc, const struct gm_oom *oom)
{
	for (unsigned i = 0; oom->stack && i < doc->sites_count; i++)
		if (doc->sites[i].stack == oom->stack &&
		    doc->sites[i].record.device == oom->record.device)
			return doc->sites[i].merged;
	return GM_NO_SITE;
}

/* The most that the same place was given after the last event, 0 if it was given nothing. */
static uint64_t served_after(const struct gm_doc *doc, const struct story *story)
{
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		if (site->stack == story->last->stack &&
		    site->record.device == story->last->record.device &&
		    site->record.last_ns > story->last->record.time_ns)
			return site->record.max_alloc_bytes;
	}
	return 0;
}

static const char *title(struct gm_doc *doc, const struct story *story)
{
	const struct gm_oom *oom = story->first;
	const char *api = oom->api ? oom->api : "the framework", *text;
	uint64_t served;

	if (!story->most_bytes)
		return gm_doc_printf(doc, "out of memory (%s)%s: %s at %s", oom->verdict,
				     story->events == 1
					     ? ""
					     : gm_doc_printf(doc, ", %u times", story->events),
				     api, story->place);
	if (story->events == 1)
		return gm_doc_printf(doc, "out of memory (%s): %s asked for %s at %s", oom->verdict,
				     api, gm_size(doc, oom->record.requested_bytes), story->place);
	text = story->least_bytes == story->most_bytes
		       ? gm_size(doc, story->most_bytes)
		       : gm_doc_printf(doc, "%s to %s", gm_size(doc, story->least_bytes),
				       gm_size(doc, story->most_bytes));
	text = gm_doc_printf(doc, "out of memory (%s), %u times: %s asked for %s at %s",
			     story->causes, story->events, api, text, story->place);
	served = served_after(doc, story);
	return served ? gm_doc_printf(doc, "%s; later it was given up to %s", text,
				      gm_size(doc, served))
		      : text;
}

static void tell(struct gm_doc *doc, const struct story *story)
{
	const struct gm_oom *last = story->last;
	struct gm_finding *finding = gm_finding_new(doc, "oom", GM_ERROR, last->record.device,
						    story->most_bytes, site_of(doc, last));

	finding->title = title(doc, story);
	finding->brief = gm_doc_printf(doc, "out of memory (%s) at %s", story->first->verdict,
				       story->place);
	finding->evidence = reasons(doc, last);
	if (story->events > 1)
		finding->evidence = gm_doc_printf(doc, "the last of them: %s", finding->evidence);
	finding->advice = last->advice;
	finding->advice_count = last->advice_count;
}

void gm_judge_ooms(struct gm_doc *doc)
{
	struct story *stories = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < doc->ooms_count; i++) {
		struct gm_oom *oom = &doc->ooms[i];

		gm_oom_facts(doc, oom);
		oom->verdict = verdict(doc, oom);
		oom->phase = gm_phase_of(oom->stack);
	}
	judge_searches(doc);
	for (unsigned i = 0; i < doc->ooms_count; i++) {
		gm_oom_advise(doc, &doc->ooms[i]);
		add_to_story(doc, &stories, &count, &doc->ooms[i]);
	}
	for (unsigned i = 0; i < count; i++)
		tell(doc, &stories[i]);
	if (doc->ooms_lost && doc->ooms_count)
		gm_doc_warn(doc,
			    "%llu out-of-memory events were seen; the first %u and the latest are "
			    "described, %llu between them are only counted",
			    (unsigned long long)(doc->ooms_count + doc->ooms_lost), GM_OOMS_FIRST,
			    (unsigned long long)doc->ooms_lost);
}
