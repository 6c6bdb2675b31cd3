/*
 * The allocations and frees over time, for the page: from the complete history, else from the ring
 * as far back as its events tell everything.
 */
#include "report/history/events.h"
#include "report/history/moment.h"
#include "report/journal/journal_file.h"
#include "report/journal/replay.h"
#include "report/render/page/internal.h"
#include "report/support/numbering.h"
#include "account/kinds.h"
#include <stdlib.h>
#include <string.h>

void gm_page_changes_free(struct gm_page_changes *changes)
{
	free(changes->list);
	free(changes->blocks);
	free(changes->failures);
}

struct gm_page_change *gm_page_add_change(struct gm_page_changes *changes)
{
	struct gm_page_change *change;

	if (changes->count == changes->room) {
		changes->room = changes->room ? 2 * changes->room : 4096;
		changes->list = gm_realloc(changes->list, changes->room * sizeof(*change));
	}
	change = &changes->list[changes->count++];
	*change = (struct gm_page_change){.came = GM_NONE};
	return change;
}

static void add_failure(struct gm_page_changes *changes, const struct gm_event_record *event)
{
	if (changes->failures_count == GM_PAGE_FAILURES)
		return;
	if (changes->failures_count == changes->failures_room) {
		changes->failures_room = changes->failures_room ? 2 * changes->failures_room : 64;
		changes->failures = gm_realloc(changes->failures,
					       changes->failures_room * sizeof(*changes->failures));
	}
	changes->failures[changes->failures_count++] =
		(struct gm_page_failure){event->time_ns, event->bytes, event->site};
}

/* A site that reads like another is counted as part of that. */
static uint32_t merged(const struct gm_doc *doc, uint32_t site)
{
	return site < doc->sites_count ? doc->sites[site].merged : GM_NONE;
}

/*
 * True if a change counts in its site's live bytes: every allocation does, but neither mappings nor
 * reservations.
 */
static bool counted(const struct gm_page_change *change)
{
	return change->space != GM_SPACE_MAPPING && change->space != GM_SPACE_RESERVATION;
}

static struct gm_page_change came(const struct gm_doc *doc, const struct gm_alloc_record *record,
				  uint64_t time_ns)
{
	return (struct gm_page_change){.time_ns = time_ns,
				       .address = record->key,
				       .bytes = record->bytes,
				       .site = merged(doc, record->site),
				       .came = GM_NONE,
				       .device = record->device,
				       .level = record->level,
				       .space = record->space,
				       .kind = record->kind};
}

static struct gm_page_change *add_came(struct gm_page_changes *changes, const struct gm_doc *doc,
				       const struct gm_alloc_record *record, uint64_t time_ns)
{
	struct gm_page_change *change = gm_page_add_change(changes);

	*change = came(doc, record, time_ns);
	return change;
}

static struct gm_page_change *add_went(struct gm_page_changes *changes, uint32_t came,
				       uint64_t time_ns)
{
	struct gm_page_change *change = gm_page_add_change(changes);

	*change = changes->list[came];
	change->time_ns = time_ns;
	change->came = came;
	return change;
}

/* ---- the complete history ---- */

struct player {
	struct gm_doc *doc;
	struct gm_page_changes *changes;
	struct gm_page_thinning *thinning;
	struct gm_replay replay;
	uint32_t *came; /* by the record's number, the change by which it came; GM_NONE */
	uint32_t room;
	uint64_t totals[GM_SLOTS][GM_LEVELS];
	bool too_many;
};

static uint32_t *came_of(struct player *player, uint32_t index)
{
	if (index >= player->room) {
		uint32_t room = 2 * index + 1024;

		player->came = gm_realloc(player->came, room * sizeof(*player->came));
		memset(player->came + player->room, 0xff,
		       (room - player->room) * sizeof(*player->came));
		player->room = room;
	}
	return &player->came[index];
}

static void count(struct player *player, struct gm_page_change *change, uint32_t index)
{
	uint64_t *total = &player->totals[gm_slot(change->device)][change->level];

	change->number = player->changes->seen++;
	change->index = index;
	if (counted(change) && gm_in_level(change->level, change->kind))
		*total += change->came == GM_NONE ? change->bytes : -change->bytes;
	gm_page_thinning_note(player->thinning, change, *total);
}

static void thin(struct player *player)
{
	struct gm_page_changes *changes = player->changes;

	if (!gm_page_thin(player->thinning, changes, GM_PAGE_CHANGES))
		player->too_many = true;
	for (unsigned i = 0; i < changes->count; i++)
		*came_of(player, changes->list[i].index) =
			changes->list[i].came == GM_NONE ? i : GM_NONE;
}

/* The memory behind a mapping gives it its site. */
static void come(struct player *player, const struct gm_alloc_record *record, uint32_t index,
		 uint64_t time_ns)
{
	struct gm_alloc_record told = *record;

	if (record->level >= GM_LEVELS)
		return;
	if (record->space == GM_SPACE_MAPPING && record->site == GM_NONE &&
	    record->owner < player->replay.count)
		told.site = player->replay.records[record->owner].site;
	count(player, add_came(player->changes, player->doc, &told, time_ns), index);
	*came_of(player, index) = player->changes->count - 1;
}

static void go(struct player *player, uint32_t index, uint64_t time_ns)
{
	uint32_t *came = came_of(player, index);

	if (*came == GM_NONE)
		return;
	count(player, add_went(player->changes, *came, time_ns), index);
	*came_of(player, index) = GM_NONE;
}

static void play(struct player *player, const struct gm_journal_entry *entry)
{
	struct gm_replay_step step = gm_replay_apply(&player->replay, entry);
	uint64_t time_ns = entry->event.time_ns;

	if (entry->what == GM_JOURNAL_CALL && entry->event.op == GM_OP_ALLOC_FAILED)
		add_failure(player->changes, &entry->event);
	if (step.removed || step.resized)
		go(player, entry->index, time_ns);
	if (step.added || step.resized)
		come(player, step.added ? step.added : step.resized, entry->index, time_ns);
	if (player->changes->count >= 2 * GM_PAGE_CHANGES && !player->too_many)
		thin(player);
}

static void find_in_journal(struct gm_doc *doc, struct gm_page_changes *changes)
{
	static struct gm_journal_entry entry;
	struct player player = {.doc = doc, .changes = changes, .thinning = gm_page_thinning_new()};

	gm_journal_rewind(doc->journal);
	while (!player.too_many && gm_journal_next(doc->journal, &entry) &&
	       (doc->at_ns == GM_NO_BYTES || entry.event.time_ns <= doc->at_ns))
		play(&player, &entry);
	if (changes->count > GM_PAGE_CHANGES && !player.too_many)
		thin(&player);
	if (player.too_many)
		changes->reason = "more blocks were live at once than the page holds";
	else if (gm_history_gap(doc))
		changes->reason = "the complete history ends before the recording does";
	gm_page_thinning_free(player.thinning);
	gm_replay_free(&player.replay);
	free(player.came);
}

/* ---- the ring ---- */

static bool frees(const struct gm_event_record *event)
{
	return event->op == GM_OP_FREE || event->op == GM_OP_IMPLICIT_FREE;
}

/* Frees without a serial number freed nothing that is known. */
static bool tells(const struct gm_event_record *event)
{
	return event->op == GM_OP_ALLOC || (frees(event) && event->serial) ||
	       event->op == GM_OP_MAP || event->op == GM_OP_UNMAP;
}

/* The first event from which on every free says what it frees. */
static unsigned first_told(const struct gm_history *history)
{
	unsigned first = history->count;

	for (; first > 0; first--) {
		const struct gm_event_record *event = &history->events[first - 1];

		if (frees(event) && event->serial && event->site == GM_NONE && !event->bytes)
			break;
	}
	return first;
}

/* Live memory by serial number, mappings and reservations by address: numbers of changes. */
struct ring {
	struct gm_doc *doc;
	struct gm_page_changes *changes;
	struct gm_numbering keys;
	uint32_t *came;
	unsigned room;
};

/* By what a record is known in the ring. */
struct ring_key {
	uint64_t space; /* 0: `which` is a serial number, else an address */
	uint64_t which;
};

static struct ring_key ring_key_of(const struct gm_alloc_record *record)
{
	bool numbered = record->space != GM_SPACE_MAPPING && record->space != GM_SPACE_RESERVATION;

	return (struct ring_key){numbered ? 0 : record->space,
				 numbered ? record->serial : record->key};
}

static uint32_t *ring_came(struct ring *ring, const struct gm_alloc_record *record)
{
	const struct ring_key key = ring_key_of(record);
	bool added;
	unsigned number = gm_number_of(&ring->keys, &key, sizeof(key), &added);

	if (number >= ring->room) {
		ring->room = 2 * number + 1024;
		ring->came = gm_realloc(ring->came, ring->room * sizeof(*ring->came));
	}
	if (added)
		ring->came[number] = GM_NONE;
	return &ring->came[number];
}

static struct gm_alloc_record record_of(const struct gm_event_record *event)
{
	bool mapping = event->op == GM_OP_MAP || event->op == GM_OP_UNMAP;

	return (struct gm_alloc_record){.key = event->key,
					.bytes = event->bytes,
					.site = event->site,
					.device = event->device,
					.level = event->level,
					.space = mapping ? GM_SPACE_MAPPING : event->space,
					.kind = mapping ? GM_KIND_NONE : event->kind,
					.serial = event->serial,
					.owner = GM_NONE};
}

static void ring_comes(struct ring *ring, const struct gm_alloc_record *record, uint64_t time_ns)
{
	if (record->level >= GM_LEVELS)
		return;
	*ring_came(ring, record) = ring->changes->count;
	add_came(ring->changes, ring->doc, record, time_ns);
}

/* Ends the mappings that one call unmaps, which can be several. */
static void ring_unmaps(struct ring *ring, const struct gm_event_record *event)
{
	unsigned count = ring->keys.count;

	for (unsigned i = 0; i < count; i++) {
		const struct gm_page_change *came =
			ring->came[i] == GM_NONE ? NULL : &ring->changes->list[ring->came[i]];

		if (!came || came->space != GM_SPACE_MAPPING || came->address < event->key ||
		    came->address - event->key >= event->bytes)
			continue;
		add_went(ring->changes, ring->came[i], event->time_ns);
		ring->came[i] = GM_NONE;
	}
}

static void ring_plays(struct ring *ring, const struct gm_event_record *event)
{
	struct gm_alloc_record record = record_of(event);
	uint32_t *came;

	if (event->op == GM_OP_ALLOC || event->op == GM_OP_MAP) {
		ring_comes(ring, &record, event->time_ns);
	} else if (event->op == GM_OP_UNMAP) {
		ring_unmaps(ring, event);
	} else if (frees(event) && event->serial) {
		came = ring_came(ring, &record);
		if (*came != GM_NONE)
			add_went(ring->changes, *came, event->time_ns);
		*came = GM_NONE;
	}
}

/*
 * Adds the memory that was live before event `first`: memory that is freed or unmapped after it
 * without having come after it, and memory that is live at the end in the same way.
 */
static void ring_starts(struct ring *ring, const struct gm_history *history, unsigned first,
			uint64_t from_ns)
{
	struct gm_page_changes *changes = ring->changes;
	struct gm_numbering later = {0};
	bool added;

	for (unsigned i = first; i < history->count; i++) {
		const struct gm_event_record *event = &history->events[i];
		struct gm_alloc_record record = record_of(event);
		const struct ring_key key = ring_key_of(&record);

		if (!tells(event))
			continue;
		gm_number_of(&later, &key, sizeof(key), &added);
		if (added && event->op != GM_OP_ALLOC && event->op != GM_OP_MAP)
			ring_comes(ring, &record, from_ns);
	}
	changes->blocks_at = changes->count;
	changes->blocks =
		gm_realloc(NULL, ((size_t)ring->doc->blocks_count + 1) * sizeof(*changes->blocks));
	for (unsigned i = 0; i < ring->doc->blocks_count; i++) {
		const struct gm_alloc_record record = gm_doc_block(ring->doc, i);
		const struct ring_key key = ring_key_of(&record);

		/* No event frees it, so none will look for it by its key. */
		if (record.level < GM_LEVELS && !gm_is_numbered(&later, &key, sizeof(key)))
			changes->blocks[changes->blocks_count++] = i;
	}
	changes->start = gm_page_changes_count(changes);
	gm_numbering_free(&later);
}

unsigned gm_page_changes_count(const struct gm_page_changes *changes)
{
	return changes->count + changes->blocks_count;
}

struct gm_page_change gm_page_change_at(const struct gm_page_changes *changes, unsigned number)
{
	unsigned first = changes->blocks_at, past = first + changes->blocks_count;
	struct gm_alloc_record record, handle;

	if (number < first || number >= past)
		return changes->list[number < first ? number : number - changes->blocks_count];
	record = gm_doc_block(changes->doc, changes->blocks[number - first]);
	if (record.space == GM_SPACE_MAPPING && record.site == GM_NONE && record.owner != GM_NONE &&
	    gm_doc_record(changes->doc, record.owner, &handle))
		record.site = handle.site;
	return came(changes->doc, &record, changes->from_ns);
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

static void find_in_ring(struct gm_doc *doc, struct gm_page_changes *changes)
{
	struct gm_history history = gm_load_history(doc);
	struct ring ring = {.doc = doc, .changes = changes};
	unsigned first = first_told(&history);

	for (unsigned i = 0; i < history.count; i++)
		if (history.events[i].op == GM_OP_ALLOC_FAILED)
			add_failure(changes, &history.events[i]);
	if (!history.count)
		changes->reason = "the file keeps no events";
	else if (released_while_mapped(&history))
		changes->reason = "memory was released while it was mapped, and held on";
	else if (!history.complete)
		changes->reason = "older events have left the ring";
	if (!history.count || first == history.count ||
	    (changes->reason && released_while_mapped(&history))) {
		changes->from_ns = GM_NO_BYTES;
		return;
	}
	if (changes->reason)
		changes->from_ns = history.events[first].time_ns;
	ring_starts(&ring, &history, first, changes->from_ns);
	for (unsigned i = first; i < history.count; i++)
		ring_plays(&ring, &history.events[i]);
	changes->seen = gm_page_changes_count(changes) - changes->start;
	gm_numbering_free(&ring.keys);
	free(ring.came);
}

/* ---- both ---- */

/* True when the changes lead to the live bytes that the sites have. */
static bool agrees(const struct gm_doc *doc, const struct gm_page_changes *changes)
{
	uint64_t *live = gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*live));
	bool equal = true;

	memset(live, 0, (doc->sites_count + 1) * sizeof(*live));
	for (unsigned i = 0; i < gm_page_changes_count(changes); i++) {
		const struct gm_page_change change = gm_page_change_at(changes, i);

		if (counted(&change) && change.site < doc->sites_count)
			live[change.site] += change.came == GM_NONE ? change.bytes : -change.bytes;
	}
	for (unsigned i = 0; equal && i < doc->sites_count; i++)
		equal = live[i] == doc->sites[i].record.live_bytes;
	free(live);
	return equal;
}

struct gm_page_changes gm_page_find_changes(struct gm_doc *doc)
{
	struct gm_page_changes changes = {.doc = doc};

	if (doc->journal)
		find_in_journal(doc, &changes);
	else
		find_in_ring(doc, &changes);
	if (changes.from_ns != GM_NO_BYTES && !agrees(doc, &changes)) {
		changes.from_ns = GM_NO_BYTES;
		if (!changes.reason)
			changes.reason = "some events and figures do not agree";
	}
	return changes;
}
