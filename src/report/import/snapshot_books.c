/*
 * Keeping the books of a replayed run (books.h), by the rules of layout.h.
 */
#include "report/import/snapshot_books.h"
#include <string.h>

void gm_import_books_begin(struct gm_import_books *books, struct gm_image *image,
			   uint64_t duration_ns)
{
	memset(books, 0, sizeof(*books));
	books->image = image;
	books->width_ns = duration_ns / GM_WINDOWS + 1;
	image->header.window_current = duration_ns ? GM_WINDOWS - 1 : 0;
	for (unsigned i = 0; i < GM_WINDOWS; i++)
		image->header.window_start_ns[i] = i * books->width_ns;
}

void gm_import_books_end(struct gm_import_books *books)
{
	gm_numbering_free(&books->sites);
}

uint32_t gm_import_books_site(struct gm_import_books *books, uint32_t stack, unsigned level,
			      unsigned kind, int device)
{
	uint32_t key[4] = {stack, level, kind, (uint32_t)device};
	struct gm_site_record *site;
	bool added;
	uint32_t number = gm_number_of(&books->sites, key, sizeof(key), &added);

	if (!added)
		return number;
	site = gm_image_add(books->image, GM_TABLE_SITES, sizeof(*site), NULL);
	site->stack = stack;
	site->level = (uint8_t)level;
	site->kind = (uint8_t)kind;
	site->device = (int16_t)device;
	site->first_ns = books->now_ns;
	site->first_serial = books->serial + 1;
	site->min_alloc_bytes = UINT64_MAX;
	site->function = site->caller_module = GM_NONE;
	site->flags = level == GM_LEVEL_DRIVER ? GM_SITE_TORCH : 0;
	return number;
}

struct gm_level_record *gm_import_books_level(struct gm_import_books *books, int device,
					      unsigned level)
{
	struct gm_level_record *record;

	for (uint32_t i = 0; i < books->image->tables[GM_TABLE_LEVELS].count; i++) {
		record = gm_image_record(books->image, GM_TABLE_LEVELS, i);
		if (record->device == device && record->level == level)
			return record;
	}
	record = gm_image_add(books->image, GM_TABLE_LEVELS, sizeof(*record), NULL);
	record->device = (int16_t)device;
	record->level = (uint8_t)level;
	return record;
}

static struct gm_usage_record *usage_of(struct gm_import_books *books,
					const struct gm_site_record *site)
{
	struct gm_usage_record *record;

	for (uint32_t i = 0; i < books->image->tables[GM_TABLE_USAGE].count; i++) {
		record = gm_image_record(books->image, GM_TABLE_USAGE, i);
		if (record->device == site->device && record->kind == site->kind)
			return record;
	}
	record = gm_image_add(books->image, GM_TABLE_USAGE, sizeof(*record), NULL);
	record->device = site->device;
	record->kind = site->kind;
	return record;
}

/* Brings a site's windows to the present one and notes its live bytes in it. */
static void note_window(struct gm_import_books *books, struct gm_site_record *site)
{
	uint64_t current = books->now_ns / books->width_ns;
	struct gm_window *window = &site->windows[site->window_current];

	if (current >= GM_WINDOWS)
		current = GM_WINDOWS - 1;
	while (site->window_current < current) {
		struct gm_window next = {window->last_bytes, window->last_bytes,
					 window->last_bytes};

		window = &site->windows[++site->window_current];
		*window = next;
	}
	if (site->live_bytes < window->min_bytes)
		window->min_bytes = site->live_bytes;
	if (site->live_bytes > window->max_bytes)
		window->max_bytes = site->live_bytes;
	window->last_bytes = site->live_bytes;
}

/* A site that is about to change first settles what it had when its level was last at its peak. */
static void settle(struct gm_site_record *site, const struct gm_level_record *level)
{
	if (site->epoch < level->epoch)
		site->bytes_at_peak = site->live_bytes;
	site->epoch = level->epoch;
}

static void raise_level(struct gm_import_books *books, struct gm_level_record *level,
			uint64_t bytes)
{
	level->current_bytes += bytes;
	level->current_count++;
	level->physical_bytes += bytes;
	level->allocated_bytes += bytes;
	level->allocations++;
	if (level->current_bytes >= level->peak_bytes) {
		if (level->current_bytes > level->peak_bytes)
			level->peak_at_ns = books->now_ns;
		level->peak_bytes = level->physical_peak_bytes = level->current_bytes;
		level->epoch++;
	}
}

static void raise_usage(struct gm_usage_record *usage, uint64_t bytes)
{
	usage->current_bytes += bytes;
	usage->current_count++;
	usage->allocated_bytes += bytes;
	usage->allocations++;
	if (usage->current_bytes > usage->peak_bytes)
		usage->peak_bytes = usage->current_bytes;
}

void gm_import_books_add(struct gm_import_books *books, uint32_t number, uint64_t bytes)
{
	struct gm_site_record *site = gm_image_record(books->image, GM_TABLE_SITES, number);
	struct gm_level_record *level = gm_import_books_level(books, site->device, site->level);

	settle(site, level);
	site->live_bytes += bytes;
	site->live_count++;
	site->allocated_bytes += bytes;
	site->allocations++;
	site->last_ns = books->now_ns;
	if (site->live_bytes > site->peak_bytes)
		site->peak_bytes = site->live_bytes;
	if (bytes < site->min_alloc_bytes)
		site->min_alloc_bytes = bytes;
	if (bytes > site->max_alloc_bytes)
		site->max_alloc_bytes = bytes;
	note_window(books, site);
	raise_level(books, level, bytes);
	if (level->current_bytes > site->level_max_bytes)
		site->level_max_bytes = level->current_bytes;
	if (site->level == GM_LEVEL_DRIVER)
		raise_usage(usage_of(books, site), bytes);
	books->image->header.events++;
}

void gm_import_books_take(struct gm_import_books *books, uint32_t number, uint64_t bytes,
			  bool ended)
{
	struct gm_site_record *site = gm_image_record(books->image, GM_TABLE_SITES, number);
	struct gm_level_record *level = gm_import_books_level(books, site->device, site->level);

	settle(site, level);
	site->live_bytes -= bytes;
	site->live_count -= ended;
	site->freed_bytes += bytes;
	site->frees += ended;
	note_window(books, site);
	level->current_bytes -= bytes;
	level->physical_bytes -= bytes;
	level->current_count -= ended;
	level->freed_bytes += bytes;
	level->frees += ended;
	if (site->level == GM_LEVEL_DRIVER) {
		struct gm_usage_record *usage = usage_of(books, site);

		usage->current_bytes -= bytes;
		usage->current_count -= ended;
		usage->freed_bytes += bytes;
		usage->frees += ended;
	}
	books->image->header.events++;
}

static struct gm_timeline_record *timeline_of(struct gm_import_books *books, int device,
					      enum gm_series series)
{
	struct gm_timeline_record *line;

	for (uint32_t i = 0; i < books->image->tables[GM_TABLE_TIMELINE].count; i++) {
		line = gm_image_record(books->image, GM_TABLE_TIMELINE, i);
		if (line->device == device && line->series == series)
			return line;
	}
	line = gm_image_add(books->image, GM_TABLE_TIMELINE, sizeof(*line), NULL);
	line->device = (int16_t)device;
	line->series = (uint8_t)series;
	line->width_ns = books->width_ns / (GM_TIMELINE_POINTS / GM_WINDOWS) + 1;
	line->points = 1;
	return line;
}

void gm_import_books_series(struct gm_import_books *books, int device, enum gm_series series,
			    uint64_t bytes)
{
	struct gm_timeline_record *line = timeline_of(books, device, series);
	uint64_t point = books->now_ns / line->width_ns;
	unsigned at = line->points - 1;

	if (point >= GM_TIMELINE_POINTS)
		point = GM_TIMELINE_POINTS - 1;
	for (; at < point; at++)
		line->min_bytes[at + 1] = line->max_bytes[at + 1] = line->last_bytes[at + 1] =
			line->last_bytes[at];
	line->points = at + 1;
	if (bytes < line->min_bytes[at])
		line->min_bytes[at] = bytes;
	if (bytes > line->max_bytes[at])
		line->max_bytes[at] = bytes;
	line->last_bytes[at] = bytes;
}
