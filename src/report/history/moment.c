/*
 * See moment.h.
 */
#include "report/history/moment.h"
#include "report/doc/options.h"
#include "report/history/internal.h"
#include "report/journal/journal_file.h"
#include <stdio.h>

bool gm_doc_record(const struct gm_doc *doc, uint32_t number, struct gm_alloc_record *record)
{
	if (doc->at_ns == GM_NO_BYTES)
		return gm_reader_get(doc->reader, GM_TABLE_ALLOCS, number, record, sizeof(*record));
	if (number >= doc->records_count)
		return false;
	*record = doc->records[number];
	return true;
}

/* Opens the windows that have begun by then; returns the time at which the next one does. */
static uint64_t open_windows(const struct gm_header *header, struct gm_books *books,
			     uint64_t time_ns)
{
	for (;;) {
		uint32_t next = books->window + 1;

		if (next > header->window_current || next >= GM_WINDOWS)
			return GM_NO_BYTES;
		if (header->window_start_ns[next] > time_ns)
			return header->window_start_ns[next];
		gm_books_next_window(books, header->window_start_ns[next]);
	}
}

static struct gm_books *play_until(struct gm_doc *doc, struct gm_replay *replay, uint64_t at_ns)
{
	static struct gm_journal_entry entry;
	struct gm_books *books = gm_books_new(doc);
	uint64_t next_window_ns = 0;

	gm_journal_resume(doc->journal, at_ns);
	while (gm_journal_next(doc->journal, &entry) && entry.event.time_ns <= at_ns) {
		struct gm_replay_step step = gm_replay_apply(replay, &entry);

		if (entry.event.time_ns >= next_window_ns)
			next_window_ns = open_windows(doc->header, books, entry.event.time_ns);
		if (entry.what == GM_JOURNAL_PART)
			gm_checkpoint_apply(doc, &entry.record, replay, books);
		else if (entry.what == GM_JOURNAL_CALL)
			gm_books_call(books, &entry.event);
		else
			gm_books_step(books, &step, entry.event.time_ns);
	}
	open_windows(doc->header, books, at_ns);
	return books;
}

/* Up to where the history goes if it ends early; GM_NO_BYTES if it does not. */
static uint64_t history_end(const struct gm_doc *doc)
{
	const struct gm_journal_header *header = gm_journal_header(doc->journal);

	return header->lost ? header->lost_from_ns : GM_NO_BYTES;
}

static bool from_journal(struct gm_doc *doc, const struct gm_options *options, char *error,
			 size_t error_bytes)
{
	struct gm_replay replay = {0};
	struct gm_books *books = play_until(doc, &replay, options->at_ns);
	const char *damage = gm_journal_damage(doc->journal);
	bool fine;

	if (!damage && replay.partial)
		damage = "has a damaged part";
	fine = !damage;
	if (!fine)
		snprintf(error, error_bytes,
			 "--at: the history %s before that moment; a moment further back can be "
			 "told",
			 damage);
	if (replay.odd)
		gm_doc_warn(doc,
			    "%llu entries of the history do not fit; figures at that moment may "
			    "be wrong",
			    (unsigned long long)replay.odd);
	if (fine)
		gm_moment_put(doc, books, &replay, options);
	gm_replay_free(&replay);
	return fine;
}

bool gm_moment_apply(struct gm_doc *doc, const struct gm_options *options, char *error,
		     size_t error_bytes)
{
	if (!options->at)
		return true;
	if (doc->duration_s < gm_seconds(options->at_ns)) {
		snprintf(error, error_bytes, "--at: %s ends after %.9g s; give an earlier moment",
			 doc->path, doc->duration_s);
		return false;
	}
	if (!doc->journal)
		return gm_moment_from_ring(doc, options, error, error_bytes);
	if (options->at_ns > history_end(doc)) {
		snprintf(error, error_bytes,
			 "--at: the history of %s ends after %.9g s, where its cap or a "
			 "full disk stopped it; give an earlier moment",
			 doc->path, gm_seconds(history_end(doc)));
		return false;
	}
	return from_journal(doc, options, error, error_bytes);
}

void gm_moment_finish(struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->sites_count; i++) /* the one before it is not known */
		if (doc->at_ns != GM_NO_BYTES && doc->sites[i].record.last_ns > doc->at_ns)
			doc->sites[i].record.last_ns = GM_NO_BYTES;
	if (!doc->peaks_unknown)
		return;
	for (unsigned i = 0; i < doc->levels_count; i++)
		doc->levels[i].peak_bytes = GM_NO_BYTES;
	for (unsigned i = 0; i < doc->usage_count; i++)
		doc->usage[i].peak_bytes = GM_NO_BYTES;
	for (unsigned i = 0; i < doc->sites_count; i++)
		doc->sites[i].record.peak_bytes = doc->sites[i].record.bytes_at_peak = GM_NO_BYTES;
	for (unsigned i = 0; i < doc->categories_count; i++)
		doc->categories[i].bytes_at_peak = GM_NO_BYTES;
	for (unsigned i = 0; i < doc->phases_count; i++)
		doc->phases[i].peak_bytes = GM_NO_BYTES;
}
