/*
 * The lines of `top` (top.h): the process, its devices, usage with rates, retries and the last
 * out-of-memory event, then the sites that hold or take most.
 */
#include "report/render/top/top.h"
#include "report/doc/enum_names.h"
#include "report/doc/options.h"
#include "report/render/top/top_lines.h"
#include "report/stacks/labels.h"
#include "report/support/format.h"
#include "report/support/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HELD_ROWS    5u /* leading rows that say what keeps the memory */
#define LINE_BYTES   1024
#define PLACE_WIDTH  24 /* columns that the place gets before another column is shown */
#define NUMBER_WIDTH 11

static const char *const sort_names[GM_TOP_SORTS] = {"live", "growth", "peak", "total", "count"};

/* The state of drawing one screen. */
struct screen {
	const struct gm_top *top;
	struct gm_doc *doc;
	struct gm_top_out out;
};

int gm_top_sort_number(const char *name)
{
	for (int i = 0; i < GM_TOP_SORTS; i++)
		if (strcmp(name, sort_names[i]) == 0)
			return i;
	return -1;
}

void gm_top_init(struct gm_top *top, const struct gm_options *options)
{
	int sort = options->sort ? gm_top_sort_number(options->sort) : -1;

	memset(top, 0, sizeof(*top));
	top->sort = sort < 0 ? GM_TOP_LIVE : (enum gm_top_sort)sort;
	top->device = options->device;
	top->level = options->level;
	top->kind = options->kind;
	top->sampled_s = top->calls_per_s = NAN;
}

void gm_top_choose(struct gm_top *top, const struct gm_top *like)
{
	top->sort = like->sort;
	top->device = like->device;
	top->level = like->level;
	top->kind = like->kind;
	top->paused = like->paused;
	memcpy(top->filter, like->filter, sizeof(top->filter));
}

void gm_top_free(struct gm_top *top)
{
	for (unsigned i = 0; i < top->sites; i++)
		free(top->places[i]);
	free(top->places);
	free(top->base_bytes);
}

bool gm_top_wants_places(const struct gm_top *top, const struct gm_doc *doc)
{
	return doc->sites_count > top->sites;
}

static char *copy(const char *text)
{
	return strcpy(gm_realloc(NULL, strlen(text) + 1), text);
}

/* Names new sites. What a site had when it was first seen is no growth in the first sample. */
static void add_sites(struct gm_top *top, struct gm_doc *doc)
{
	bool first = top->sites == 0;

	if (!gm_top_wants_places(top, doc))
		return;
	top->places = gm_realloc(top->places, doc->sites_count * sizeof(*top->places));
	top->base_bytes = gm_realloc(top->base_bytes, doc->sites_count * sizeof(*top->base_bytes));
	for (; top->sites < doc->sites_count; top->sites++) {
		const struct gm_site *site = &doc->sites[top->sites];

		top->places[top->sites] = copy(gm_stack_label(doc, site->stack));
		top->base_bytes[top->sites] = first ? site->record.live_bytes : 0;
	}
}

void gm_top_reset_growth(struct gm_top *top, const struct gm_doc *doc)
{
	for (unsigned i = 0; i < top->sites && i < doc->sites_count; i++)
		top->base_bytes[i] = doc->sites[i].record.live_bytes;
}

void gm_top_growth_by_window(struct gm_top *top, const struct gm_doc *doc)
{
	for (unsigned i = 0; i < top->sites && i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];
		unsigned current = site->record.window_current;

		top->base_bytes[i] = current ? gm_site_window(site, current - 1).last_bytes : 0;
	}
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
	return now > before ? (double)(now - before) / seconds : 0;
}

void gm_top_sample(struct gm_top *top, struct gm_doc *doc, double now_s)
{
	uint64_t allocated = 0, freed = 0;
	double seconds = now_s - top->sampled_s;

	for (unsigned i = 0; i < doc->usage_count; i++) {
		allocated += doc->usage[i].allocated_bytes;
		freed += doc->usage[i].freed_bytes;
	}
	for (unsigned i = 0; i < doc->torches_count; i++) {
		allocated += doc->torches[i].allocated_total_bytes;
		freed += doc->torches[i].freed_total_bytes;
	}
	if (seconds > 0) { /* false for the first sample's NAN */
		top->calls_per_s = rate(doc->header->events, top->calls, seconds);
		top->allocated_per_s = rate(allocated, top->allocated_bytes, seconds);
		top->freed_per_s = rate(freed, top->freed_bytes, seconds);
	}
	top->sampled_s = now_s;
	top->calls = doc->header->events;
	top->allocated_bytes = allocated;
	top->freed_bytes = freed;
	add_sites(top, doc);
}

/* ---- the parts ---- */

static void process(struct screen *screen)
{
	const struct gm_doc *doc = screen->doc;
	char time[GM_FORMAT_BYTES], count[GM_FORMAT_BYTES], allocated[GM_FORMAT_BYTES],
		freed[GM_FORMAT_BYTES];

	gm_top_line(&screen->out, GM_BOLD, "%s  pid %u  %s  %s%s",
		    doc->program ? doc->program : "?", doc->header->pid, doc->end,
		    gm_format_time(time, doc->duration_s), screen->top->paused ? "  paused" : "");
	if (isnan(screen->top->calls_per_s)) {
		gm_top_line(&screen->out, GM_PLAIN, "%s calls",
			    gm_format_count(count, doc->header->events));
		return;
	}
	gm_top_line(&screen->out, GM_PLAIN, "%s calls, %.0f a second: %s/s allocated, %s/s freed",
		    gm_format_count(count, doc->header->events), screen->top->calls_per_s,
		    gm_format_size(allocated, (uint64_t)screen->top->allocated_per_s),
		    gm_format_size(freed, (uint64_t)screen->top->freed_per_s));
}

static bool wanted_device(const struct screen *screen, int device)
{
	return screen->top->device < 0 || device == screen->top->device;
}

static void devices(struct screen *screen)
{
	const struct gm_doc *doc = screen->doc;

	for (unsigned i = 0; i < doc->levels_count; i++) {
		const struct gm_level_record *level = &doc->levels[i];
		uint64_t limit = gm_device_limit(gm_doc_device(doc, level->device));
		char current[GM_FORMAT_BYTES], peak[GM_FORMAT_BYTES], all[GM_FORMAT_BYTES],
			name[24], bar[24], where[40];

		if (!wanted_device(screen, level->device))
			continue;
		snprintf(where, sizeof(where), "%s %s", gm_device_name(name, level->device),
			 level->device < 0 ? "pinned" : gm_level_name(level->level));
		gm_top_bar(bar, 20, level->current_bytes, level->peak_bytes,
			   limit == GM_NO_BYTES || level->device < 0 ? level->peak_bytes : limit);
		gm_top_line(&screen->out, GM_PLAIN, "%-16s %10s [%s] peak %s%s%s", where,
			    gm_format_size(current, level->current_bytes), bar,
			    gm_format_size(peak, level->peak_bytes),
			    limit == GM_NO_BYTES || level->device < 0 ? "" : " of ",
			    limit == GM_NO_BYTES || level->device < 0 ? ""
								      : gm_format_size(all, limit));
	}
	for (unsigned i = 0; i < doc->torches_count; i++) {
		const struct gm_torch_record *torch = &doc->torches[i];
		char reserved[GM_FORMAT_BYTES], idle[GM_FORMAT_BYTES], name[24];

		if (wanted_device(screen, torch->device))
			gm_top_line(
				&screen->out, GM_PLAIN,
				"%s PyTorch   %10s reserved, %s of it not allocated",
				gm_device_name(name, torch->device),
				gm_format_size(reserved, torch->reserved_bytes),
				gm_format_size(idle, torch->reserved_bytes > torch->allocated_bytes
							     ? torch->reserved_bytes -
								       torch->allocated_bytes
							     : 0));
	}
}

static void troubles(struct screen *screen)
{
	const struct gm_doc *doc = screen->doc;
	const struct gm_oom *oom = NULL;
	char time[GM_FORMAT_BYTES], asked[GM_FORMAT_BYTES];
	uint64_t attempts = 0, recovered = 0, exhausted = 0;

	for (unsigned i = 0; i < doc->retries_count; i++) {
		attempts += doc->retries[i].attempts;
		recovered += doc->retries[i].recovered;
		exhausted += doc->retries[i].exhausted;
	}
	if (attempts)
		gm_top_line(&screen->out, GM_YELLOW,
			    "retries: %llu attempt%s, %llu recovered, %llu exhausted",
			    (unsigned long long)attempts, attempts == 1 ? "" : "s",
			    (unsigned long long)recovered,
			    (unsigned long long)exhausted);
	for (unsigned i = 0; i < doc->ooms_count; i++)
		if (wanted_device(screen, doc->ooms[i].record.device) &&
		    (!oom || doc->ooms[i].record.time_ns >= oom->record.time_ns))
			oom = &doc->ooms[i];
	if (oom)
		gm_top_line(&screen->out, GM_RED, "last out of memory: at %s, %s asked for, %s, %s",
			    gm_format_time(time, (double)oom->record.time_ns / 1e9),
			    gm_format_size(asked, oom->record.requested_bytes),
			    oom->verdict ? oom->verdict : "exhausted",
			    gm_stack_label(screen->doc, oom->stack));
}

/* ---- the sites ---- */

struct row {
	unsigned site;
	int64_t growth;
	double key;
};

static int64_t growth_of(const struct gm_top *top, const struct gm_site *site, unsigned number)
{
	uint64_t base = number < top->sites ? top->base_bytes[number] : 0;

	return (int64_t)site->record.live_bytes - (int64_t)base;
}

static bool shown(const struct gm_top *top, const struct gm_site *site, unsigned number)
{
	const struct gm_site_figures *record = &site->record;

	return record->allocations && (top->device < 0 || record->device == top->device) &&
	       (top->level < 0 || record->level == top->level) &&
	       (top->kind < 0 || record->kind == top->kind) && number < top->sites &&
	       (!*top->filter || strstr(top->places[number], top->filter));
}

static double sort_key(const struct gm_top *top, const struct gm_site *site, int64_t growth)
{
	switch (top->sort) {
	case GM_TOP_GROWTH:
		return (double)growth;
	case GM_TOP_PEAK:
		return (double)site->record.peak_bytes;
	case GM_TOP_TOTAL:
		return (double)site->record.allocated_bytes;
	case GM_TOP_COUNT:
		return (double)site->record.allocations;
	default:
		return (double)site->record.live_bytes;
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static struct row *gather(const struct screen *screen, unsigned *count)
{
	const struct gm_doc *doc = screen->doc;
	struct row *rows = gm_realloc(NULL, doc->sites_count * sizeof(*rows));

	*count = 0;
	for (unsigned i = 0; i < doc->sites_count; i++) {
		int64_t growth = growth_of(screen->top, &doc->sites[i], i);

		if (!shown(screen->top, &doc->sites[i], i))
			continue;
		rows[(*count)++] =
			(struct row){i, growth, sort_key(screen->top, &doc->sites[i], growth)};
	}
	if (*count)
		qsort(rows, *count, sizeof(*rows), compare_rows);
	return rows;
}

/* The columns before the place; on a narrow terminal the last ones are left out. */
static const char *const titles[] = {"live", "growth", "peak", "count", "total", "kind"};
#define COLUMNS (sizeof(titles) / sizeof(titles[0]))

static const char *cell(char text[GM_FORMAT_BYTES], const struct gm_site_figures *record,
			int64_t growth, size_t column)
{
	switch (column) {
	case 0:
		return gm_format_size(text, record->live_bytes);
	case 1:
		return gm_format_change(text, growth < 0 ? (uint64_t)-growth : 0,
					growth < 0 ? 0 : (uint64_t)growth);
	case 2:
		return gm_format_size(text, record->peak_bytes);
	case 3:
		return gm_format_count(text, record->allocations);
	case 4:
		return gm_format_size(text, record->allocated_bytes);
	default:
		return record->level == GM_LEVEL_DRIVER ? gm_kind_name(record->kind)
							: gm_level_name(record->level);
	}
}

/* The chain that keeps most of a site's memory, if holders were looked for, in as many lines as
 * it takes. */
static void holder_of(struct screen *screen, unsigned site)
{
	const struct gm_doc *doc = screen->doc;
	char text[LINE_BYTES] = "    held by ";
	size_t columns = strlen(text);

	for (unsigned i = 0; i < doc->holders_count; i++) {
		const struct gm_holder *holder = &doc->holders[i];

		if (holder->site != site || !holder->chain_count)
			continue;
		for (unsigned k = 0; k < holder->chain_count; k++) {
			size_t more = strlen(holder->chain[k]) + strlen(" ->");

			if (k && columns + more > screen->out.width) {
				gm_top_line(&screen->out, GM_PLAIN, "%s", text);
				strcpy(text, "      ");
				columns = strlen(text);
			}
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				 holder->chain[k], k + 1 < holder->chain_count ? " \u2192 " : "");
			columns += more + 1;
		}
		gm_top_line(&screen->out, GM_PLAIN, "%s%s", text,
			    holder->complete ? "" : " (not complete)");
		return;
	}
}

static void sites(struct screen *screen)
{
	size_t columns = screen->out.width > PLACE_WIDTH
				 ? (screen->out.width - PLACE_WIDTH) / (NUMBER_WIDTH + 1)
				 : 1;
	char text[LINE_BYTES], value[GM_FORMAT_BYTES];
	unsigned count;
	struct row *rows = gather(screen, &count);

	columns = columns < 1 ? 1 : columns > COLUMNS ? COLUMNS : columns;
	*text = '\0';
	for (size_t c = 0; c < columns; c++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%*s ", NUMBER_WIDTH,
			 titles[c]);
	gm_top_line(&screen->out, GM_BOLD, "%s site, by %s%s%s", text,
		    sort_names[screen->top->sort], *screen->top->filter ? ", with " : "",
		    screen->top->filter);
	if (screen->top->rows && count > screen->top->rows)
		count = screen->top->rows;
	for (unsigned i = 0; i < count && screen->out.left; i++) {
		*text = '\0';
		for (size_t c = 0; c < columns; c++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%*s ",
				 NUMBER_WIDTH,
				 cell(value, &screen->doc->sites[rows[i].site].record,
				      rows[i].growth, c));
		gm_top_line(&screen->out, rows[i].growth > 0 ? GM_YELLOW : GM_PLAIN, "%s %s", text,
			    screen->top->places[rows[i].site]);
		if (i < HELD_ROWS)
			holder_of(screen, rows[i].site);
	}
	if (!count)
		gm_top_line(&screen->out, GM_PLAIN, "no site");
	free(rows);
}

void gm_top_lines(const struct gm_top *top, struct gm_doc *doc, unsigned width, unsigned height,
		  void (*emit)(void *data, enum gm_style style, const char *line), void *data)
{
	struct screen screen = {top, doc, {width, height, emit, data}};

	process(&screen);
	devices(&screen);
	troubles(&screen);
	gm_top_line(&screen.out, GM_PLAIN, "%s", "");
	sites(&screen);
}
