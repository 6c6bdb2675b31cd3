/*
 * See snapshot_books.h.
 */
#include "report/import/snapshot_books.h"
#include "account/counters.h"
#include "account/site_windows.h"
#include "account/series.h"
#include <string.h>

void gm_import_books_begin(struct gm_import_books *books, struct gm_image *image,
			   uint64_t duration_ns, const uint64_t *work_ns, size_t frees)
{
	unsigned windows = frees < GM_WINDOWS - 1 ? (unsigned)frees + 1 : GM_WINDOWS;

	memset(books, 0, sizeof(*books));
	books->image = image;
	books->width_ns = duration_ns / GM_TIMELINE_POINTS + 1;
	image->header.last_event_ns = duration_ns; /* also where the history cannot be played */
	image->header.window_current = duration_ns ? windows - 1 : 0;
	for (unsigned i = 1; i < windows && duration_ns; i++)
		image->header.window_start_ns[i] = work_ns[i * frees / windows];
}

/* The window that is open now. */
static uint32_t open_window(const struct gm_import_books *books)
{
	const struct gm_header *header = &books->image->header;
	uint32_t i = header->window_current;

	while (i && header->window_start_ns[i] > books->now_ns)
		i--;
	return i;
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
	gm_site_begin(site, books->now_ns);
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

/* The records that an allocation of the site counts in, with the site's windows up to date. */
static struct gm_counters counters_of(struct gm_import_books *books, uint32_t number)
{
	struct gm_site_record *site = gm_image_record(books->image, GM_TABLE_SITES, number);

	gm_site_follow_windows(site, open_window(books), 0, 0);
	return (struct gm_counters){
		.site = site,
		.level = gm_import_books_level(books, site->device, site->level),
		.usage = gm_in_usage(site->level, site->kind) ? usage_of(books, site) : NULL,
		.in_level = gm_in_level(site->level, site->kind),
	};
}

void gm_import_books_add(struct gm_import_books *books, uint32_t number, uint64_t bytes)
{
	const struct gm_counters in = counters_of(books, number);

	gm_count_alloc(&in, bytes, books->serial, books->now_ns);
	if (in.usage)
		gm_level_physical(in.level, bytes);
	books->image->header.events++;
}

void gm_import_books_take(struct gm_import_books *books, uint32_t number, uint64_t bytes,
			  bool ended)
{
	const struct gm_counters in = counters_of(books, number);

	gm_count_free(&in, bytes, ended, false);
	if (in.usage)
		gm_level_physical(in.level, -bytes);
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
	line->width_ns = books->width_ns;
	line->points = 1;
	return line;
}

void gm_import_books_series(struct gm_import_books *books, int device, enum gm_series series,
			    uint64_t bytes)
{
	struct gm_timeline_record *line = timeline_of(books, device, series);

	gm_series_put(line, books->now_ns, bytes);
}
