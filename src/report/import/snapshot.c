/*
 * From a pickle's values to a snapshot (snapshot.h). Values of unexpected types and figures that
 * cannot be are left out and counted, never trusted.
 */
#include "report/import/snapshot.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 4096u

static const char *const actions[GM_ACTIONS] = {
	"alloc",	"free_requested", "free_completed", "segment_alloc",
	"segment_free", "segment_map",	  "segment_unmap",  "oom"};

/* Remembers a number for the next key of a table; the array grows by powers of two. */
static void remember(uint32_t **array, unsigned key, uint32_t number)
{
	if ((key & (key - 1)) == 0)
		*array = gm_realloc(*array, (key ? 2 * (size_t)key : 1) * sizeof(**array));
	(*array)[key] = number;
}

static uint32_t add_text(struct gm_snapshot *snapshot, const struct gm_value *value)
{
	size_t bytes;
	bool added;
	unsigned key;

	if (!value || value->type != GM_VALUE_TEXT)
		return GM_NONE;
	bytes = value->count < NAME_BYTES ? value->count : NAME_BYTES;
	key = gm_number_of(&snapshot->texts, value->text, bytes, &added);
	if (added)
		remember(&snapshot->string_of_text, key,
			 gm_image_string(snapshot->image, value->text, bytes));
	return snapshot->string_of_text[key];
}

static uint32_t add_frame(struct gm_snapshot *snapshot, const struct gm_value *value)
{
	uint64_t line = gm_value_number(value, "line", 0);
	uint32_t key[3] = {add_text(snapshot, gm_value_get(value, "name")),
			   add_text(snapshot, gm_value_get(value, "filename")),
			   line <= UINT32_MAX ? (uint32_t)line : 0};
	struct gm_frame_record *frame;
	bool added;
	unsigned number = gm_number_of(&snapshot->frames, key, sizeof(key), &added);

	if (added) {
		frame = gm_image_add(snapshot->image, GM_TABLE_FRAMES, sizeof(*frame), NULL);
		frame->kind = GM_FRAME_PYTHON;
		frame->python.function_string = key[0];
		frame->python.file_string = key[1];
		frame->python.line = key[2];
	}
	return number;
}

static uint32_t add_stack(struct gm_snapshot *snapshot, struct gm_value **items, unsigned count)
{
	uint32_t frames[GM_MAX_DEPTH] = {0};
	unsigned kept = count < GM_MAX_DEPTH ? count : GM_MAX_DEPTH, number;
	struct gm_stack_record *stack;
	uint32_t first = 0;
	bool added;

	for (unsigned i = 0; i < kept; i++)
		frames[i] = add_frame(snapshot, items[i]);
	number = gm_number_of(&snapshot->stacks, frames, kept * sizeof(*frames), &added);
	if (!added)
		return number;
	for (unsigned i = 0; i < kept; i++) {
		uint32_t place, *frame = gm_image_add(snapshot->image, GM_TABLE_STACK_FRAMES,
						      sizeof(*frame), &place);

		*frame = frames[i];
		first = i ? first : place;
	}
	stack = gm_image_add(snapshot->image, GM_TABLE_STACKS, sizeof(*stack), NULL);
	stack->first = first;
	stack->frames = (uint16_t)kept;
	stack->flags = kept < count ? GM_STACK_TRUNCATED : 0;
	return number;
}

/* Takes entries from the budget: as many as are left. */
static unsigned allow(struct gm_snapshot *snapshot, unsigned count)
{
	unsigned allowed = count < snapshot->budget ? count : (unsigned)snapshot->budget;

	snapshot->budget -= allowed;
	snapshot->odd += count - allowed;
	return allowed;
}

/* The stack of a record's `frames`; of a block of 2023 also of the last entry of its `history`. */
static uint32_t stack_of(struct gm_snapshot *snapshot, const struct gm_value *record)
{
	const struct gm_value *list = gm_value_get(record, "frames");
	unsigned count, key;
	bool added;

	if (!list) {
		struct gm_value **history = gm_value_list(record, "history", &count);

		list = count ? gm_value_get(history[0], "frames") : NULL;
	}
	if (!list || list->type != GM_VALUE_LIST || !list->count)
		return GM_NONE;
	/* A list that was met before is not walked again. */
	key = gm_number_of(&snapshot->lists, &list, sizeof(list), &added);
	if (added)
		remember(&snapshot->stack_of_list, key,
			 add_stack(snapshot, list->items, list->count));
	return snapshot->stack_of_list[key];
}

static enum gm_snapshot_state state_of(const struct gm_value *block)
{
	const struct gm_value *state = gm_value_get(block, "state");

	if (gm_value_is(state, "active_allocated"))
		return GM_BLOCK_ALLOCATED;
	return gm_value_is(state, "active_pending_free") ||
			       gm_value_is(state, "active_awaiting_free")
		       ? GM_BLOCK_PENDING
		       : GM_BLOCK_INACTIVE;
}

/* Blocks lie one after the other; early schemas do not say where. */
static void read_blocks(struct gm_snapshot *snapshot, struct gm_snapshot_segment *segment,
			const struct gm_value *value)
{
	unsigned count;
	struct gm_value **items = gm_value_list(value, "blocks", &count);
	uint64_t at = segment->start, end = segment->start + segment->bytes;

	count = allow(snapshot, count);
	segment->blocks = gm_zone_alloc(snapshot->zone, count, sizeof(*segment->blocks));
	for (unsigned i = 0; i < count; i++) {
		struct gm_snapshot_block *block = &segment->blocks[segment->blocks_count];

		block->start = gm_value_number(items[i], "address", at);
		block->bytes = gm_value_number(items[i], "size", 0);
		if (block->start < at || block->start >= end || block->bytes == 0 ||
		    block->bytes > end - block->start) {
			snapshot->odd++;
			continue;
		}
		at = block->start + block->bytes;
		block->requested_bytes = gm_value_number(items[i], "requested_size", GM_NO_BYTES);
		block->state = state_of(items[i]);
		block->stack = stack_of(snapshot, items[i]);
		segment->blocks_count++;
	}
}

/*
 * PyTorch names a pool by two numbers: a graph's pool has the first, one that a program made the
 * second.
 */
static uint64_t pool_of(const struct gm_value *segment)
{
	const struct gm_value *id = gm_value_get(segment, "segment_pool_id");
	uint64_t numbers[2];

	if (!id || (id->type != GM_VALUE_TUPLE && id->type != GM_VALUE_LIST) || id->count != 2)
		return 0;
	for (unsigned i = 0; i < 2; i++)
		numbers[i] = id->items[i]->type == GM_VALUE_INT && !id->items[i]->negative
				     ? id->items[i]->number
				     : 0;
	return numbers[0] ? 2 * numbers[0] : numbers[1] ? 2 * numbers[1] + 1 : 0;
}

static void read_segments(struct gm_snapshot *snapshot, struct gm_value **items, unsigned count)
{
	count = allow(snapshot, count);
	snapshot->segments = gm_zone_alloc(snapshot->zone, count, sizeof(*snapshot->segments));
	for (unsigned i = 0; i < count; i++) {
		struct gm_snapshot_segment *segment = &snapshot->segments[snapshot->segments_count];
		uint64_t device = gm_value_number(items[i], "device", 0);

		segment->start = gm_value_number(items[i], "address", 0);
		segment->bytes = gm_value_number(items[i], "total_size", 0);
		if (device >= GM_SNAPSHOT_DEVICES || !segment->start || !segment->bytes ||
		    segment->bytes > INT64_MAX || segment->start > INT64_MAX) {
			snapshot->odd++;
			continue;
		}
		segment->device = (int)device;
		segment->stream = gm_value_number(items[i], "stream", 0);
		segment->expandable = gm_value_number(items[i], "is_expandable", 0) == 1;
		segment->small = gm_value_is(gm_value_get(items[i], "segment_type"), "small");
		segment->pool = pool_of(items[i]);
		segment->stack = stack_of(snapshot, items[i]);
		read_blocks(snapshot, segment, items[i]);
		snapshot->segments_count++;
	}
}

/* False for actions that change no memory (`snapshot`) and for what makes no sense. */
static bool read_event(struct gm_snapshot *snapshot, const struct gm_value *value,
		       struct gm_snapshot_event *event)
{
	const struct gm_value *action = gm_value_get(value, "action");
	unsigned kind = 0;

	while (kind < GM_ACTIONS && !gm_value_is(action, actions[kind]))
		kind++;
	if (kind == GM_ACTIONS) {
		snapshot->odd += !gm_value_is(action, "snapshot");
		return false;
	}
	event->action = (enum gm_snapshot_action)kind;
	event->start = kind == GM_ACTION_OOM ? gm_value_number(value, "device_free", GM_NO_BYTES)
					     : gm_value_number(value, "addr", 0);
	event->bytes = gm_value_number(value, "size", 0);
	event->stream = gm_value_number(value, "stream", 0);
	event->time_us = gm_value_number(value, "time_us", 0);
	if (kind != GM_ACTION_OOM && (event->start > INT64_MAX || event->bytes > INT64_MAX)) {
		snapshot->odd++;
		return false;
	}
	event->stack = stack_of(snapshot, value);
	return true;
}

static void read_traces(struct gm_snapshot *snapshot, struct gm_value **items, unsigned count)
{
	if (count > GM_SNAPSHOT_DEVICES)
		count = GM_SNAPSHOT_DEVICES;
	snapshot->traces = gm_zone_alloc(snapshot->zone, count, sizeof(*snapshot->traces));
	snapshot->traces_count = count;
	for (unsigned d = 0; d < count; d++) {
		struct gm_snapshot_trace *trace = &snapshot->traces[d];
		unsigned entries = items[d]->type == GM_VALUE_LIST ? items[d]->count : 0;

		entries = allow(snapshot, entries);
		trace->events = gm_zone_alloc(snapshot->zone, entries, sizeof(*trace->events));
		for (unsigned i = 0; i < entries; i++)
			trace->count += read_event(snapshot, items[d]->items[i],
						   &trace->events[trace->count]);
	}
}

static int compare_annotations(const void *a, const void *b)
{
	const struct gm_snapshot_annotation *const *x = a, *const *y = b;

	if ((*x)->time_us != (*y)->time_us)
		return (*x)->time_us < (*y)->time_us ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

/* Annotations of several threads may be out of order by microseconds. */
static void sort_annotations(struct gm_snapshot *snapshot)
{
	unsigned count = snapshot->annotations_count;
	struct gm_snapshot_annotation *sorted =
		gm_zone_alloc(snapshot->zone, count, sizeof(*sorted));
	struct gm_snapshot_annotation **order = gm_realloc(NULL, (count + 1) * sizeof(*order));

	for (unsigned i = 0; i < count; i++)
		order[i] = &snapshot->annotations[i];
	if (count)
		qsort(order, count, sizeof(*order), compare_annotations);
	for (unsigned i = 0; i < count; i++)
		sorted[i] = *order[i];
	free(order);
	snapshot->annotations = sorted;
}

static void read_annotations(struct gm_snapshot *snapshot, struct gm_value **items, unsigned count)
{
	count = allow(snapshot, count);
	snapshot->annotations =
		gm_zone_alloc(snapshot->zone, count, sizeof(*snapshot->annotations));
	for (unsigned i = 0; i < count; i++) {
		struct gm_snapshot_annotation *annotation =
			&snapshot->annotations[snapshot->annotations_count];
		const struct gm_value *name = gm_value_get(items[i], "name");
		const struct gm_value *stage = gm_value_get(items[i], "stage");
		uint64_t device = gm_value_number(items[i], "device", 0);
		size_t bytes;

		if (!name || name->type != GM_VALUE_TEXT || device >= GM_SNAPSHOT_DEVICES ||
		    (!gm_value_is(stage, "START") && !gm_value_is(stage, "END"))) {
			snapshot->odd++;
			continue;
		}
		bytes = name->count < GM_RANGE_NAME_BYTES ? name->count : GM_RANGE_NAME_BYTES - 1;
		memcpy(annotation->name, name->text, bytes);
		annotation->ends = gm_value_is(stage, "END");
		annotation->device = (int)device;
		annotation->time_us = gm_value_number(items[i], "time_us", 0);
		snapshot->annotations_count++;
	}
	sort_annotations(snapshot);
}

bool gm_snapshot_read(struct gm_snapshot *snapshot, struct gm_zone *zone, struct gm_image *image,
		      const struct gm_value *values, uint64_t pickle_bytes, char *error,
		      size_t error_bytes)
{
	const struct gm_value *segments = gm_value_get(values, "segments");
	struct gm_value **traces;
	unsigned count;

	memset(snapshot, 0, sizeof(*snapshot));
	snapshot->zone = zone;
	snapshot->image = image;
	snapshot->budget = pickle_bytes;
	if (values->type == GM_VALUE_LIST) /* torch.cuda.memory_snapshot() itself */
		segments = values;
	if (!segments || segments->type != GM_VALUE_LIST) {
		snprintf(error, error_bytes,
			 "is a pickle, but no memory snapshot of PyTorch: it has no list of "
			 "segments");
		return false;
	}
	read_segments(snapshot, segments->items, segments->count);
	traces = gm_value_list(values, "device_traces", &count);
	read_traces(snapshot, traces, count);
	traces = gm_value_list(values, "external_annotations", &count);
	read_annotations(snapshot, traces, count);
	snapshot->settings = gm_value_get(values, "allocator_settings");
	if (!snapshot->segments_count && segments->count) {
		snprintf(error, error_bytes,
			 "is a pickle with a list of segments, but none of them is one of "
			 "PyTorch's");
		return false;
	}
	return true;
}

void gm_snapshot_end(struct gm_snapshot *snapshot)
{
	gm_numbering_free(&snapshot->lists);
	gm_numbering_free(&snapshot->stacks);
	gm_numbering_free(&snapshot->frames);
	gm_numbering_free(&snapshot->texts);
	free(snapshot->stack_of_list);
	free(snapshot->string_of_text);
}
