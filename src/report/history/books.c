/*
 * See books.h.
 */
#include "report/history/books.h"
#include "account/torch_record.h"
#include "account/vmm_record.h"
#include <string.h>

struct gm_books *gm_books_new(struct gm_doc *doc)
{
	struct gm_books *books = gm_zone_alloc(&doc->zone, 1, sizeof(*books));

	books->sites_count = doc->sites_count;
	books->sites = gm_zone_alloc(&doc->zone, doc->sites_count + 1, sizeof(*books->sites));
	return books;
}

struct gm_counters gm_books_counters(struct gm_books *books, uint32_t site, int device,
				     unsigned level, unsigned kind)
{
	unsigned slot = gm_slot(device);

	return (struct gm_counters){
		.site = site < books->sites_count ? &books->sites[site] : NULL,
		.level = &books->levels[slot][level],
		.usage = gm_in_usage(level, kind) ? &books->usage[slot][kind] : NULL,
		.in_level = gm_in_level(level, kind),
	};
}

/* Returns the records that a change counts in, which are in use from now on. */
static struct gm_counters use_counters(struct gm_books *books, uint32_t site, int device,
				       unsigned level, unsigned kind)
{
	struct gm_counters in = gm_books_counters(books, site, device, level, kind);

	books->levels_used[gm_slot(device)][level] = true;
	in.level->device = (int16_t)device;
	in.level->level = (uint8_t)level;
	if (in.usage) {
		in.usage->device = (int16_t)device;
		in.usage->kind = (uint8_t)kind;
	}
	return in;
}

static struct gm_counters counters_of(struct gm_books *books, const struct gm_alloc_record *alloc)
{
	return use_counters(books, alloc->site, alloc->device, alloc->level, alloc->kind);
}

/* Before a change of a site: opens the window that is looked at, in windows[0], with the bytes of
 * before. */
static void open_window(const struct gm_books *books, struct gm_site_record *site, uint64_t time_ns)
{
	if (!site || time_ns < books->window_from_ns || site->window_resets)
		return;
	site->windows[0] = (struct gm_window){site->live_bytes, site->live_bytes, site->live_bytes};
	site->window_resets = 1; /* here: that the window was touched */
}

void gm_books_next_window(struct gm_books *books, uint64_t from_ns)
{
	books->window++;
	books->window_from_ns = from_ns;
	for (uint32_t i = 0; i < books->sites_count; i++)
		books->sites[i].window_resets = 0;
}

static void begin_site(struct gm_site_record *site, uint64_t time_ns)
{
	if (site && !site->allocations && !site->failures)
		gm_site_begin(site, time_ns);
}

static void added(struct gm_books *books, const struct gm_alloc_record *alloc, uint64_t time_ns)
{
	const struct gm_counters in = counters_of(books, alloc);
	struct gm_torch_record *torch = &books->torch[gm_slot(alloc->device)];

	books->serial = alloc->serial;
	begin_site(in.site, alloc->time_ns);
	open_window(books, in.site, time_ns);
	gm_count_alloc(&in, alloc->bytes, alloc->serial, alloc->time_ns);
	if (alloc->level == GM_LEVEL_TORCH) {
		books->torch_seen = true;
		gm_torch_block_add(torch, alloc->bytes);
		gm_torch_raise_peaks(torch);
	} else {
		gm_torch_add_driver(torch, alloc, books->torch_seen);
	}
	if (gm_in_vmm(alloc))
		gm_vmm_add(&books->vmm[gm_slot(alloc->device)], alloc);
}

static void removed(struct gm_books *books, const struct gm_alloc_record *alloc, uint64_t time_ns)
{
	const struct gm_counters in = counters_of(books, alloc);
	struct gm_torch_record *torch = &books->torch[gm_slot(alloc->device)];

	open_window(books, in.site, time_ns);
	gm_count_free(&in, alloc->bytes, 1, false);
	if (alloc->level == GM_LEVEL_TORCH)
		gm_torch_block_remove(torch, alloc->bytes);
	else
		gm_torch_remove_driver(torch, alloc);
	if (gm_in_vmm(alloc))
		gm_vmm_remove(&books->vmm[gm_slot(alloc->device)], alloc);
}

static void resized(struct gm_books *books, const struct gm_alloc_record *alloc,
		    uint64_t more_bytes, uint64_t time_ns)
{
	const struct gm_counters in = counters_of(books, alloc);

	open_window(books, in.site, time_ns);
	gm_count_resize(&in, more_bytes, time_ns);
}

void gm_books_step(struct gm_books *books, const struct gm_replay_step *step, uint64_t time_ns)
{
	if (step->added)
		added(books, step->added, time_ns);
	else if (step->removed)
		removed(books, step->removed, time_ns);
	else if (step->resized)
		resized(books, step->resized, step->more_bytes, time_ns);
}

void gm_books_call(struct gm_books *books, const struct gm_event_record *event)
{
	struct gm_counters in;

	if (event->op == GM_OP_FREE_FAILED && event->site < books->sites_count)
		books->sites[event->site].failed_frees++;
	if (event->op != GM_OP_ALLOC_FAILED)
		return;
	in = use_counters(books, event->site, event->device, event->level, event->kind);
	begin_site(in.site, event->time_ns);
	gm_count_failure(&in);
}
