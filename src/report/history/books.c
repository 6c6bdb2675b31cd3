/*
 * See books.h.
 */
#include "report/history/books.h"
#include "account/kinds.h"
#include <string.h>

unsigned gm_books_slot(int device)
{
	if (device < 0)
		return 0;
	return device < GM_BOOK_DEVICES - 1 ? (unsigned)device + 1 : GM_BOOK_DEVICES - 1;
}

struct gm_books *gm_books_new(struct gm_doc *doc)
{
	struct gm_books *books = gm_zone_alloc(&doc->zone, 1, sizeof(*books));

	books->sites_count = doc->sites_count;
	books->sites = gm_zone_alloc(&doc->zone, doc->sites_count + 1, sizeof(*books->sites));
	for (uint32_t i = 0; i < doc->sites_count; i++)
		books->sites[i].min_alloc_bytes = UINT64_MAX;
	return books;
}

/* ---- sites ---- */

static void settle_peak(struct gm_site_record *site, const struct gm_level_record *level)
{
	if (site->epoch < level->epoch) {
		site->bytes_at_peak = site->live_bytes;
		site->epoch = level->epoch;
	}
}

/* Before a change in the window that is looked at, and after it. */
static void note_window(const struct gm_books *books, struct gm_site_record *site, uint64_t time_ns)
{
	struct gm_window *window = &site->windows[0];

	if (time_ns < books->window_from_ns)
		return;
	if (!site->window_resets) /* here: that the window was touched */
		window->min_bytes = window->max_bytes = site->live_bytes;
	site->window_resets = 1;
	if (site->live_bytes < window->min_bytes)
		window->min_bytes = site->live_bytes;
	if (site->live_bytes > window->max_bytes)
		window->max_bytes = site->live_bytes;
}

static void site_add(struct gm_site_record *site, const struct gm_level_record *level,
		     const struct gm_alloc_record *alloc)
{
	settle_peak(site, level);
	site->live_bytes += alloc->bytes;
	site->live_count++;
	site->allocated_bytes += alloc->bytes;
	if (!site->allocations++) {
		site->first_serial = alloc->serial;
		site->first_ns = alloc->time_ns;
	}
	site->last_ns = alloc->time_ns;
	if (site->live_bytes > site->peak_bytes)
		site->peak_bytes = site->live_bytes;
	if (alloc->bytes < site->min_alloc_bytes)
		site->min_alloc_bytes = alloc->bytes;
	if (alloc->bytes > site->max_alloc_bytes)
		site->max_alloc_bytes = alloc->bytes;
}

static void site_remove(struct gm_site_record *site, const struct gm_level_record *level,
			const struct gm_alloc_record *alloc)
{
	settle_peak(site, level);
	site->live_bytes -= alloc->bytes;
	site->live_count--;
	site->freed_bytes += alloc->bytes;
	site->frees++;
}

/* ---- levels and usage ---- */

static void usage_add(struct gm_usage_record *usage, const struct gm_alloc_record *alloc)
{
	usage->device = alloc->device;
	usage->kind = alloc->kind;
	usage->current_bytes += alloc->bytes;
	usage->current_count++;
	usage->allocated_bytes += alloc->bytes;
	usage->allocations++;
	if (usage->current_bytes > usage->peak_bytes)
		usage->peak_bytes = usage->current_bytes;
}

static void usage_remove(struct gm_usage_record *usage, const struct gm_alloc_record *alloc)
{
	usage->current_bytes -= alloc->bytes;
	usage->current_count--;
	usage->freed_bytes += alloc->bytes;
	usage->frees++;
}

static void use_level(struct gm_books *books, int device, unsigned level)
{
	unsigned slot = gm_books_slot(device);

	books->levels_used[slot][level] = true;
	books->levels[slot][level].device = (int16_t)device;
	books->levels[slot][level].level = (uint8_t)level;
}

static void level_add(struct gm_level_record *level, const struct gm_alloc_record *alloc,
		      struct gm_site_record *site)
{
	level->current_bytes += alloc->bytes;
	level->current_count++;
	level->allocated_bytes += alloc->bytes;
	level->allocations++;
	if (level->current_bytes >= level->peak_bytes) {
		if (level->current_bytes > level->peak_bytes)
			level->peak_at_ns = alloc->time_ns;
		level->peak_bytes = level->current_bytes;
		level->epoch++;
	}
	if (site && level->current_bytes > site->level_max_bytes)
		site->level_max_bytes = level->current_bytes;
}

static void level_remove(struct gm_level_record *level, const struct gm_alloc_record *alloc)
{
	level->current_bytes -= alloc->bytes;
	level->current_count--;
	level->freed_bytes += alloc->bytes;
	level->frees++;
}

/* ---- PyTorch and virtual memory ---- */

bool gm_books_is_segment(const struct gm_alloc_record *alloc)
{
	return alloc->flags & GM_ALLOC_TORCH &&
	       (alloc->space == GM_SPACE_MAPPING ||
		(alloc->space == GM_SPACE_POINTER && alloc->kind == GM_KIND_DEVICE));
}

static void torch_add(struct gm_torch_record *torch, const struct gm_alloc_record *alloc)
{
	torch->device = alloc->device;
	if (alloc->level == GM_LEVEL_TORCH) {
		torch->allocated_bytes += alloc->bytes;
		torch->allocated_total_bytes += alloc->bytes;
		torch->allocations++;
	} else {
		torch->reserved_bytes += alloc->bytes;
		torch->reserved_total_bytes += alloc->bytes;
		if (alloc->space == GM_SPACE_MAPPING)
			torch->allocator = 1;
	}
	if (torch->allocated_bytes > torch->allocated_peak_bytes)
		torch->allocated_peak_bytes = torch->allocated_bytes;
	if (torch->reserved_bytes > torch->reserved_peak_bytes)
		torch->reserved_peak_bytes = torch->reserved_bytes;
}

static void torch_remove(struct gm_torch_record *torch, const struct gm_alloc_record *alloc)
{
	if (alloc->level == GM_LEVEL_TORCH) {
		torch->allocated_bytes -= alloc->bytes;
		torch->freed_total_bytes += alloc->bytes;
		torch->frees++;
	} else {
		torch->reserved_bytes -= alloc->bytes;
		torch->released_total_bytes += alloc->bytes;
	}
}

static void vmm_change(struct gm_vmm_record *vmm, const struct gm_alloc_record *alloc, bool added)
{
	uint64_t bytes = added ? alloc->bytes : -alloc->bytes;

	vmm->device = alloc->device;
	if (alloc->space == GM_SPACE_MAPPING) {
		vmm->mapped_bytes += bytes;
	} else if (alloc->space == GM_SPACE_RESERVATION) {
		vmm->reserved_va_bytes += bytes;
	} else if (alloc->kind == GM_KIND_VMM) {
		vmm->created_bytes += bytes;
		vmm->handles += added ? 1 : (uint64_t)-1;
	}
	if (vmm->created_bytes > vmm->created_peak_bytes)
		vmm->created_peak_bytes = vmm->created_bytes;
	if (vmm->mapped_bytes > vmm->mapped_peak_bytes)
		vmm->mapped_peak_bytes = vmm->mapped_bytes;
}

static bool in_vmm(const struct gm_alloc_record *alloc)
{
	return alloc->space == GM_SPACE_MAPPING || alloc->space == GM_SPACE_RESERVATION ||
	       alloc->kind == GM_KIND_VMM;
}

/* ---- steps ---- */

static struct gm_site_record *site_of(struct gm_books *books, uint32_t site)
{
	return site < books->sites_count ? &books->sites[site] : NULL;
}

static void added(struct gm_books *books, const struct gm_alloc_record *alloc, uint64_t time_ns)
{
	unsigned slot = gm_books_slot(alloc->device);
	struct gm_level_record *level = &books->levels[slot][alloc->level];
	struct gm_site_record *site = site_of(books, alloc->site);

	books->serial = alloc->serial;
	use_level(books, alloc->device, alloc->level);
	if (site) {
		note_window(books, site, time_ns);
		site_add(site, level, alloc);
		note_window(books, site, time_ns);
	}
	if (gm_in_usage(alloc->level, alloc->kind))
		usage_add(&books->usage[slot][alloc->kind], alloc);
	if (gm_in_level(alloc->level, alloc->kind))
		level_add(level, alloc, site);
	if (alloc->level == GM_LEVEL_TORCH)
		books->torch_seen = true;
	if (alloc->level == GM_LEVEL_TORCH || gm_books_is_segment(alloc))
		torch_add(&books->torch[slot], alloc);
	if (in_vmm(alloc))
		vmm_change(&books->vmm[slot], alloc, true);
}

static void removed(struct gm_books *books, const struct gm_alloc_record *alloc, uint64_t time_ns)
{
	unsigned slot = gm_books_slot(alloc->device);
	struct gm_level_record *level = &books->levels[slot][alloc->level];
	struct gm_site_record *site = site_of(books, alloc->site);

	if (site) {
		note_window(books, site, time_ns);
		site_remove(site, level, alloc);
		note_window(books, site, time_ns);
	}
	if (gm_in_usage(alloc->level, alloc->kind))
		usage_remove(&books->usage[slot][alloc->kind], alloc);
	if (gm_in_level(alloc->level, alloc->kind))
		level_remove(level, alloc);
	if (alloc->level == GM_LEVEL_TORCH || gm_books_is_segment(alloc))
		torch_remove(&books->torch[slot], alloc);
	if (in_vmm(alloc))
		vmm_change(&books->vmm[slot], alloc, false);
}

static void resized(struct gm_books *books, const struct gm_alloc_record *alloc, uint64_t more)
{
	struct gm_usage_record *usage = &books->usage[gm_books_slot(alloc->device)][alloc->kind];
	struct gm_site_record *site = site_of(books, alloc->site);

	if (site) {
		site->live_bytes += more;
		site->allocated_bytes += more;
		if (site->live_bytes > site->peak_bytes)
			site->peak_bytes = site->live_bytes;
	}
	usage->current_bytes += more;
	usage->allocated_bytes += more;
	if (usage->current_bytes > usage->peak_bytes)
		usage->peak_bytes = usage->current_bytes;
}

void gm_books_step(struct gm_books *books, const struct gm_replay_step *step, uint64_t time_ns)
{
	if (step->added)
		added(books, step->added, time_ns);
	else if (step->removed)
		removed(books, step->removed, time_ns);
	else if (step->resized)
		resized(books, step->resized, step->more_bytes);
}

void gm_books_call(struct gm_books *books, const struct gm_event_record *event)
{
	struct gm_site_record *site = site_of(books, event->site);
	unsigned slot = gm_books_slot(event->device);

	if (event->op == GM_OP_FREE_FAILED && site)
		site->failed_frees++;
	if (event->op != GM_OP_ALLOC_FAILED)
		return;
	if (site) {
		site->failures++;
		if (!site->allocations && site->failures == 1)
			site->first_ns = event->time_ns;
	}
	if (gm_in_usage(event->level, event->kind)) {
		books->usage[slot][event->kind].device = event->device;
		books->usage[slot][event->kind].kind = event->kind;
		books->usage[slot][event->kind].failures++;
	}
	use_level(books, event->device, event->level);
	books->levels[slot][event->level].failures++;
}
