/*
 * --at from the ring of events alone. A ring that nothing has fallen out of is played from the
 * start, like a complete history. Else the end of the file is where it begins, and events are taken
 * back.
 */
#include "account/sizes.h"
#include "account/torch_record.h"
#include "report/doc/options.h"
#include "report/history/events.h"
#include "report/history/internal.h"
#include "report/support/numbering.h"
#include <stdio.h>
#include <stdlib.h>

static bool frees(const struct gm_event_record *event)
{
	return event->op == GM_OP_FREE || event->op == GM_OP_IMPLICIT_FREE;
}

static struct gm_alloc_record record_of(const struct gm_doc *doc,
					const struct gm_event_record *event)
{
	bool torch = event->site < doc->sites_count && event->level == GM_LEVEL_DRIVER &&
		     doc->sites[event->site].record.flags & GM_SITE_TORCH;

	return (struct gm_alloc_record){
		.state = GM_STATE_LIVE,
		.site = event->site,
		.key = event->key,
		.bytes = event->bytes,
		.physical_bytes = gm_driver_bytes(event->level, event->kind, event->bytes),
		.time_ns = event->time_ns,
		.stream = event->stream,
		.serial = event->serial,
		.owner = GM_NONE,
		.references = 1,
		.thread = event->thread,
		.flags = torch ? GM_ALLOC_TORCH : 0,
		.space = event->space,
		.kind = event->kind,
		.device = event->device,
		.level = event->level,
		.context = GM_NONE,
	};
}

/* ---- forward ---- */

/* Live allocations by serial number and by address, as numbers of records in `replay`. */
struct player {
	struct gm_doc *doc;
	struct gm_replay replay;
	struct gm_books *books;
	struct gm_numbering serials, keys;
	uint32_t *by_key; /* number of the latest record of each key */
	unsigned by_key_room;
	uint32_t next;
	uint32_t *by_serial;
	unsigned by_serial_room;
};

/* The place for the number that belongs to some bytes; GM_NONE at first. */
static uint32_t *slot(struct gm_numbering *table, uint32_t **numbers, unsigned *room,
		      const void *bytes, size_t count)
{
	bool added;
	unsigned number = gm_number_of(table, bytes, count, &added);

	if (number >= *room) {
		*room = 2 * number + 64;
		*numbers = gm_realloc(*numbers, *room * sizeof(**numbers));
	}
	if (added)
		(*numbers)[number] = GM_NONE;
	return &(*numbers)[number];
}

static void end(struct player *player)
{
	gm_replay_free(&player->replay);
	gm_numbering_free(&player->serials);
	gm_numbering_free(&player->keys);
	free(player->by_key);
	free(player->by_serial);
}

static uint32_t *of_serial(struct player *player, uint64_t serial)
{
	return slot(&player->serials, &player->by_serial, &player->by_serial_room, &serial,
		    sizeof(serial));
}

static uint32_t *of_key(struct player *player, const struct gm_event_record *event)
{
	const uint64_t key[2] = {event->key,
				 event->op == GM_OP_MAP ? GM_SPACE_MAPPING : event->space};

	return slot(&player->keys, &player->by_key, &player->by_key_room, key, sizeof(key));
}

static void drop(struct player *player, uint32_t number, uint64_t time_ns)
{
	struct gm_journal_entry entry = {.what = GM_JOURNAL_DROP, .index = number};
	struct gm_replay_step step;

	if (number >= player->replay.count ||
	    player->replay.records[number].state == GM_STATE_EMPTY)
		return;
	step = gm_replay_apply(&player->replay, &entry);
	gm_books_step(player->books, &step, time_ns);
}

/* An allocation where one is live already ends that: its free was missed. */
static void add(struct player *player, const struct gm_event_record *event)
{
	struct gm_journal_entry entry = {.what = GM_JOURNAL_ADD, .index = player->next++};
	uint32_t *by_key = of_key(player, event);
	struct gm_replay_step step;

	drop(player, *by_key, event->time_ns);
	*by_key = entry.index;
	entry.alloc = record_of(player->doc, event);
	if (event->op == GM_OP_MAP) {
		entry.alloc.space = GM_SPACE_MAPPING;
		entry.alloc.kind = GM_KIND_NONE;
		entry.alloc.site = GM_NONE;
		entry.alloc.owner = event->serial ? *of_serial(player, event->serial) : GM_NONE;
	} else if (event->serial) {
		*of_serial(player, event->serial) = entry.index;
	}
	step = gm_replay_apply(&player->replay, &entry);
	gm_books_step(player->books, &step, event->time_ns);
}

static void unmap(struct player *player, const struct gm_event_record *event)
{
	for (uint32_t i = 0; i < player->replay.count; i++) {
		const struct gm_alloc_record *record = &player->replay.records[i];

		if (record->state != GM_STATE_EMPTY && record->space == GM_SPACE_MAPPING &&
		    record->key >= event->key && record->key - event->key < event->bytes)
			drop(player, i, event->time_ns);
	}
}

static void play(struct player *player, const struct gm_event_record *event)
{
	if (event->op == GM_OP_ALLOC || event->op == GM_OP_MAP)
		add(player, event);
	else if (frees(event) && event->serial)
		drop(player, *of_serial(player, event->serial), event->time_ns);
	else if (event->op == GM_OP_UNMAP)
		unmap(player, event);
	else
		gm_books_call(player->books, event);
}

/* Reserved address space is not in the ring, and with it not where one expandable segment ends. */
static void forget_reservations(struct gm_doc *doc)
{
	bool mapped = false;

	for (unsigned i = 0; i < doc->vmm_count; i++) {
		doc->vmm[i].reserved_va_bytes = GM_NO_BYTES;
		mapped = mapped || doc->vmm[i].mapped_bytes;
	}
	if (mapped)
		gm_doc_warn(doc,
			    "from the ring of events, which does not tell neighbouring expandable "
			    "segments apart; GPUMEMTRACE_EVENTS=all does");
}

static void forward(struct gm_doc *doc, const struct gm_history *history,
		    const struct gm_options *options)
{
	struct player player = {.doc = doc, .books = gm_books_new(doc)};

	player.books->window_from_ns = gm_moment_window(doc, options->at_ns);
	for (unsigned i = 0; i < history->count && history->events[i].time_ns <= options->at_ns;
	     i++)
		play(&player, &history->events[i]);
	gm_moment_put(doc, player.books, &player.replay, options);
	forget_reservations(doc);
	end(&player);
}

/* ---- backward ---- */

static struct gm_books *final_books(struct gm_doc *doc)
{
	struct gm_books *books = gm_books_new(doc);

	for (unsigned i = 0; i < doc->sites_count; i++)
		books->sites[i] = gm_site_record_of(&doc->sites[i]);
	for (unsigned i = 0; i < doc->levels_count; i++) {
		unsigned at = gm_slot(doc->levels[i].device);

		books->levels[at][doc->levels[i].level] = doc->levels[i];
		books->levels_used[at][doc->levels[i].level] = true;
	}
	for (unsigned i = 0; i < doc->usage_count; i++)
		books->usage[gm_slot(doc->usage[i].device)][doc->usage[i].kind] = doc->usage[i];
	for (unsigned i = 0; i < doc->torches_count; i++)
		books->torch[gm_slot(doc->torches[i].device)] = doc->torches[i];
	for (unsigned i = 0; i < doc->vmm_count; i++)
		books->vmm[gm_slot(doc->vmm[i].device)] = doc->vmm[i];
	books->serial = doc->header->serial;
	return books;
}

/* Takes an event back: how often the allocation counts more in what is live, was allocated and was
 * freed. */
static void shift(struct gm_books *books, const struct gm_alloc_record *alloc, int live,
		  int allocated, int freed)
{
	const struct gm_counters in =
		gm_books_counters(books, alloc->site, alloc->device, alloc->level, alloc->kind);

	gm_count_shift(&in, alloc->bytes, live, allocated, freed);
	gm_torch_shift(&books->torch[gm_slot(alloc->device)], alloc, live, allocated, freed);
}

static void take_back(struct player *player, const struct gm_event_record *event)
{
	uint32_t *number = of_serial(player, event->serial);
	struct gm_alloc_record record = record_of(player->doc, event);
	bool live = *number != GM_NONE && player->replay.records[*number].state != GM_STATE_EMPTY;

	if (event->op == GM_OP_ALLOC) {
		shift(player->books, &record, live ? -1 : 0, -1, live ? 0 : -1);
		if (live)
			player->replay.records[*number].state = GM_STATE_EMPTY;
		if (player->books->serial >= event->serial)
			player->books->serial = event->serial - 1;
	} else if (!live) {
		shift(player->books, &record, 1, 0, -1);
		*number = gm_replay_put(&player->replay, &record);
	}
}

static void take_back_failure(struct gm_books *books, const struct gm_event_record *event)
{
	const struct gm_counters in =
		gm_books_counters(books, event->site, event->device, event->level, event->kind);

	if (event->op == GM_OP_FREE_FAILED && in.site)
		in.site->failed_frees--;
	if (event->op == GM_OP_ALLOC_FAILED)
		gm_uncount_failure(&in);
}

static void begin_at_end(struct player *player)
{
	struct gm_doc *doc = player->doc;

	player->books = final_books(doc);
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		struct gm_alloc_record record = gm_doc_block(doc, i);
		uint32_t *number = of_serial(player, record.serial);

		*number = gm_replay_put(&player->replay, &record);
	}
}

/* Peaks of before the moment are in no sum that events can be taken back from. */
static void forget_peaks(struct gm_doc *doc, struct gm_books *books)
{
	doc->peaks_unknown = true;
	for (unsigned i = 0; i < books->sites_count; i++)
		books->sites[i].peak_bytes = books->sites[i].bytes_at_peak =
			books->sites[i].level_max_bytes = 0;
	for (unsigned at = 0; at < GM_SLOTS; at++) {
		for (unsigned i = 0; i < GM_LEVELS; i++)
			books->levels[at][i].peak_bytes = books->levels[at][i].epoch = 0;
		for (unsigned i = 0; i < GM_KINDS; i++)
			books->usage[at][i].peak_bytes = 0;
		books->torch[at].allocated_peak_bytes = books->torch[at].reserved_peak_bytes =
			GM_NO_BYTES;
		books->vmm[at].created_peak_bytes = books->vmm[at].mapped_peak_bytes = 0;
	}
	for (unsigned i = 0; i < books->sites_count; i++)
		books->sites[i].epoch = 0;
}

static bool backward(struct gm_doc *doc, const struct gm_history *history,
		     const struct gm_options *options, char *error, size_t error_bytes)
{
	struct player player = {.doc = doc};
	unsigned i = history->count;
	bool fine = true;

	begin_at_end(&player);
	for (; i > 0 && history->events[i - 1].time_ns > options->at_ns && fine; i--) {
		const struct gm_event_record *event = &history->events[i - 1];

		fine = event->op != GM_OP_MAP && event->op != GM_OP_UNMAP;
		if ((event->op == GM_OP_ALLOC || frees(event)) && event->serial)
			take_back(&player, event);
		else
			take_back_failure(player.books, event);
	}
	if (fine) {
		forget_peaks(doc, player.books);
		gm_moment_put(doc, player.books, &player.replay, options);
		forget_reservations(doc);
		gm_doc_warn(
			doc,
			"counted back from the end by the ring of events: peaks before the moment "
			"are not known; GPUMEMTRACE_EVENTS=all keeps everything");
	} else {
		snprintf(error, error_bytes,
			 "--at: %s maps memory after that moment, which the ring of events cannot "
			 "take "
			 "back; record with GPUMEMTRACE_EVENTS=all",
			 doc->path);
	}
	end(&player);
	return fine;
}

bool gm_moment_from_ring(struct gm_doc *doc, const struct gm_options *options, char *error,
			 size_t error_bytes)
{
	struct gm_history history = gm_load_history(doc);
	bool from_start = doc->header->event_capacity && doc->header->event_head <= history.count;

	if (!doc->header->event_capacity) {
		snprintf(error, error_bytes,
			 "--at: %s has no history (GPUMEMTRACE_EVENTS=off); record with "
			 "GPUMEMTRACE_EVENTS=all",
			 doc->path);
		return false;
	}
	if (from_start) {
		forward(doc, &history, options);
		return true;
	}
	if (history.count && history.events[0].time_ns <= options->at_ns)
		return backward(doc, &history, options, error, error_bytes);
	snprintf(error, error_bytes,
		 "--at: the ring of events of %s reaches back to %.9g s only; give a later moment, "
		 "or "
		 "record with GPUMEMTRACE_EVENTS=all",
		 doc->path,
		 history.count ? gm_seconds(history.events[0].time_ns) : doc->duration_s);
	return false;
}
