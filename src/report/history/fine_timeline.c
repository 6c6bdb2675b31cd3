/*
 * See fine_timeline.h.
 */
#include "report/history/fine_timeline.h"
#include "report/history/books.h"
#include "account/series.h"
#include "account/torch_record.h"
#include "report/journal/journal_file.h"
#include "account/kinds.h"
#include <string.h>

struct lines {
	struct gm_doc *doc;
	struct gm_timeline_record *line[GM_SLOTS][GM_SERIES_COUNT];
	uint64_t width_ns;
};

static bool from_history(unsigned series)
{
	return series == GM_SERIES_TRACKED || series == GM_SERIES_TORCH_ALLOCATED ||
	       series == GM_SERIES_TORCH_RESERVED || series == GM_SERIES_PINNED ||
	       series == GM_SERIES_CUSTOM;
}

static void set(struct lines *lines, int device, unsigned series, uint64_t time_ns, uint64_t bytes)
{
	struct gm_timeline_record *line = lines->line[gm_slot(device)][series];

	if (line)
		gm_series_put(line, time_ns, bytes);
}

static void note(struct lines *lines, const struct gm_books *books,
		 const struct gm_alloc_record *alloc, uint64_t time_ns)
{
	unsigned slot = gm_slot(alloc->device);

	if (gm_in_level(alloc->level, alloc->kind))
		set(lines, alloc->device, gm_level_series(alloc->level, alloc->device), time_ns,
		    books->levels[slot][alloc->level].current_bytes);
	if (gm_torch_part(alloc) == GM_TORCH_SEGMENT)
		set(lines, alloc->device, GM_SERIES_TORCH_RESERVED, time_ns,
		    books->torch[slot].reserved_bytes);
}

/* On a copy, which takes the place of the timeline if the history can be read to its end. */
static struct gm_timeline_record *begin(struct lines *lines)
{
	struct gm_doc *doc = lines->doc;
	struct gm_timeline_record *copy =
		gm_zone_alloc(&doc->zone, doc->timeline_count + 1, sizeof(*copy));

	for (unsigned i = 0; i < doc->timeline_count; i++) {
		struct gm_timeline_record *line = &copy[i];

		*line = doc->timeline[i];
		if (!from_history(line->series))
			continue;
		lines->line[gm_slot(line->device)][line->series] = line;
		line->width_ns = lines->width_ns;
		line->points = 0;
	}
	return copy;
}

static void finish(struct lines *lines, uint64_t end_ns)
{
	for (unsigned slot = 0; slot < GM_SLOTS; slot++)
		for (unsigned series = 0; series < GM_SERIES_COUNT; series++) {
			struct gm_timeline_record *line = lines->line[slot][series];

			if (line)
				gm_series_put(line, end_ns,
					      line->points ? line->last_bytes[line->points - 1]
							   : 0);
		}
}

void gm_timeline_refine(struct gm_doc *doc)
{
	uint64_t end_ns = doc->at_ns == GM_NO_BYTES ? doc->header->last_event_ns : doc->at_ns;
	struct lines lines = {.doc = doc, .width_ns = end_ns / GM_TIMELINE_POINTS + 1};
	struct gm_replay replay = {0};
	static struct gm_journal_entry entry;
	struct gm_timeline_record *copy;
	struct gm_books *books;

	if (!doc->journal || gm_journal_header(doc->journal)->lost)
		return;
	books = gm_books_new(doc);
	copy = begin(&lines);
	gm_journal_rewind(doc->journal);
	while (gm_journal_next(doc->journal, &entry) && entry.event.time_ns <= end_ns) {
		struct gm_replay_step step = gm_replay_apply(&replay, &entry);
		const struct gm_alloc_record *changed = step.added ? step.added : step.removed;

		gm_books_step(books, &step, entry.event.time_ns);
		if (changed)
			note(&lines, books, changed, entry.event.time_ns);
	}
	finish(&lines, end_ns);
	if (!gm_journal_damage(doc->journal))
		doc->timeline = copy;
	gm_replay_free(&replay);
}
