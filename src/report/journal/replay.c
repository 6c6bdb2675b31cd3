/*
 * See replay.h.
 */
#include "report/journal/replay.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

#define FIRST_RECORDS 4096u

void gm_replay_free(struct gm_replay *replay)
{
	free(replay->records);
	*replay = (struct gm_replay){0};
}

/* Numbers are handed out in order, so one that is far beyond what was added is damage. */
static struct gm_alloc_record *place_of(struct gm_replay *replay, uint32_t number)
{
	if (number < replay->count)
		return &replay->records[number];
	if (number > replay->additions + FIRST_RECORDS)
		return NULL;
	if (number >= replay->room) {
		uint32_t room = number < FIRST_RECORDS ? FIRST_RECORDS : 2 * number;

		replay->records = gm_realloc(replay->records, room * sizeof(*replay->records));
		replay->room = room;
	}
	memset(&replay->records[replay->count], 0,
	       (number + 1 - replay->count) * sizeof(*replay->records));
	replay->count = number + 1;
	return &replay->records[number];
}

uint32_t gm_replay_put(struct gm_replay *replay, const struct gm_alloc_record *record)
{
	uint32_t number = replay->count;

	replay->additions++;
	*place_of(replay, number) = *record;
	return number;
}

/* The memory behind a mapping, NULL; of memory in a pool `owner` is something else. */
static struct gm_alloc_record *behind(struct gm_replay *replay,
				      const struct gm_alloc_record *mapping)
{
	return mapping->space == GM_SPACE_MAPPING && mapping->owner < replay->count
		       ? &replay->records[mapping->owner]
		       : NULL;
}

static const struct gm_alloc_record *add(struct gm_replay *replay,
					 const struct gm_journal_entry *entry)
{
	struct gm_alloc_record *record = place_of(replay, entry->index), *memory;

	if (!record || record->state != GM_STATE_EMPTY) {
		replay->odd++;
		return NULL;
	}
	*record = entry->alloc;
	memory = behind(replay, record);
	if (memory)
		memory->mappings++;
	replay->additions++;
	return record;
}

static struct gm_alloc_record *live(struct gm_replay *replay, uint32_t number)
{
	if (number < replay->count && replay->records[number].state != GM_STATE_EMPTY)
		return &replay->records[number];
	replay->odd += !replay->partial;
	return NULL;
}

static const struct gm_alloc_record *drop(struct gm_replay *replay, uint32_t number)
{
	struct gm_alloc_record *record = live(replay, number);
	struct gm_alloc_record *memory = record ? behind(replay, record) : NULL;

	if (memory && memory->mappings)
		memory->mappings--;
	if (record)
		record->state = GM_STATE_EMPTY;
	return record;
}

void gm_replay_begin(struct gm_replay *replay, uint32_t most)
{
	gm_replay_free(replay);
	replay->additions = most;
	replay->partial = true;
}

/* The record is as an addition would have made it: later changes of these fields are in no entry.
 */
void gm_replay_restore(struct gm_replay *replay, uint32_t number,
		       const struct gm_alloc_record *record)
{
	struct gm_alloc_record *restored = place_of(replay, number);

	if (!restored)
		return;
	*restored = *record;
	restored->state = GM_STATE_LIVE;
	restored->references = 1;
	restored->flags &= (uint16_t) ~(GM_ALLOC_EXPORTED | GM_ALLOC_BEFORE_MARK);
}

/* Mappings may have been restored before the memory behind them. */
void gm_replay_end(struct gm_replay *replay, uint32_t count)
{
	if (count)
		place_of(replay, count - 1);
	for (uint32_t i = 0; i < replay->count; i++)
		replay->records[i].mappings = 0;
	for (uint32_t i = 0; i < replay->count; i++) {
		struct gm_alloc_record *memory = behind(replay, &replay->records[i]);

		if (memory && replay->records[i].state != GM_STATE_EMPTY)
			memory->mappings++;
	}
	replay->partial = false;
}

struct gm_replay_step gm_replay_apply(struct gm_replay *replay,
				      const struct gm_journal_entry *entry)
{
	struct gm_replay_step step = {0};
	struct gm_alloc_record *record;

	switch (entry->what) {
	case GM_JOURNAL_ADD:
		step.added = add(replay, entry);
		break;
	case GM_JOURNAL_DROP:
		step.removed = drop(replay, entry->index);
		break;
	case GM_JOURNAL_RESIZE:
		record = live(replay, entry->index);
		if (record && entry->bytes >= record->bytes) {
			step.more_bytes = entry->bytes - record->bytes;
			record->bytes = entry->bytes;
			step.resized = record;
		}
		break;
	case GM_JOURNAL_PART:
		break;
	case GM_JOURNAL_CALL:
		if ((entry->event.op == GM_OP_FREE || entry->event.op == GM_OP_IMPLICIT_FREE) &&
		    entry->event.serial)
			replay->told = entry->event.serial;
	}
	return step;
}

static void describe(struct gm_event_record *event, enum gm_event_op op,
		     const struct gm_alloc_record *record)
{
	event->op = (uint8_t)op;
	event->key = record->key;
	event->bytes = record->bytes;
	event->serial = record->serial;
	event->site = record->site;
	event->stack = GM_NONE;
	event->function = UINT16_MAX;
	event->kind = record->kind;
	event->device = record->device;
	event->level = record->level;
	event->space = record->space;
	event->error = 0;
	event->stream = record->stream;
}

/* A mapping is of the site, and the allocation, whose memory is mapped there. */
static void describe_mapping(struct gm_replay *replay, struct gm_event_record *event,
			     const struct gm_alloc_record *record)
{
	const struct gm_alloc_record *memory = behind(replay, record);

	describe(event, GM_OP_MAP, record);
	event->serial = memory ? memory->serial : 0;
	event->site = memory ? memory->site : GM_NONE;
}

/* By the call that ended it, of which the memory is known only now. */
static void describe_unmapping(struct gm_replay *replay, struct gm_event_record *event,
			       const struct gm_alloc_record *record)
{
	uint64_t time_ns = event->time_ns;
	uint32_t thread = event->thread;

	describe_mapping(replay, event, record);
	event->op = GM_OP_UNMAP;
	event->serial = 0;
	event->stack = replay->unmap.stack;
	event->function = replay->unmap.function;
	event->time_ns = time_ns;
	event->thread = thread;
}

bool gm_replay_event(struct gm_replay *replay, const struct gm_journal_entry *entry,
		     const struct gm_replay_step *step, struct gm_event_record *event)
{
	*event = entry->event; /* time and thread; of a call all of it */
	if (entry->what == GM_JOURNAL_CALL && entry->event.op == GM_OP_UNMAP)
		replay->unmap = entry->event;
	if (entry->what == GM_JOURNAL_CALL)
		return entry->event.op != GM_OP_UNMAP;
	if (step->added && step->added->space == GM_SPACE_MAPPING)
		describe_mapping(replay, event, step->added);
	else if (step->added && step->added->space != GM_SPACE_RESERVATION)
		describe(event, GM_OP_ALLOC, step->added);
	else if (step->removed && step->removed->space == GM_SPACE_MAPPING)
		describe_unmapping(replay, event, step->removed);
	else if (step->removed && step->removed->space != GM_SPACE_RESERVATION &&
		 step->removed->space !=
			 GM_SPACE_HANDLE && /* released by a call, whenever it ends */
		 step->removed->serial != replay->told)
		describe(event, GM_OP_FREE, step->removed);
	else
		return false;
	return true;
}
