/*
 * The stacks of a document, with the frames that their records became, see stacks.h.
 */
#include "report/stacks/stacks.h"
#include "report/stacks/entry_frames.h"
#include "report/stacks/rules.h"
#include "report/support/progress.h"
#include "report/symbols/symbolize.h"
#include <string.h>

#define MAX_INLINED (1u << GM_INLINED_BITS) /* frames that one address may become */

static void expand_native(struct gm_doc *doc, const struct gm_frame_record *record,
			  struct gm_frame_list *list)
{
	struct gm_frame frames[MAX_INLINED];
	struct gm_module_record module;
	const char *path = NULL;

	memset(frames, 0, sizeof(frames));
	list->count = 1;
	if (gm_reader_get(doc->reader, GM_TABLE_MODULES, record->native.module, &module,
			  sizeof(module)))
		path = gm_reader_string(doc->reader, module.path_string);
	if (path && doc->symbols) {
		list->count = gm_symbols_look_up(doc->symbols, &module, path, record->native.offset,
						 frames, MAX_INLINED);
	} else {
		frames[0].module = path;
		frames[0].offset = record->native.offset;
	}
	list->frames = gm_zone_alloc(&doc->zone, list->count, sizeof(*list->frames));
	memcpy(list->frames, frames, list->count * sizeof(*frames));
}

static void expand_python(struct gm_doc *doc, const struct gm_frame_record *record,
			  struct gm_frame_list *list)
{
	struct gm_frame *frame = gm_zone_alloc(&doc->zone, 1, sizeof(*frame));

	frame->python = true;
	frame->function = gm_reader_string(doc->reader, record->python.function_string);
	frame->file = gm_reader_string(doc->reader, record->python.file_string);
	frame->line = record->python.line;
	list->frames = frame;
	list->count = 1;
}

/* Returns how many frames a frame record is; 0 if it is out of range or of an unknown kind. */
static unsigned expand_frame(struct gm_doc *doc, uint32_t number)
{
	struct gm_frame_record record;
	struct gm_frame_list *list;

	if (number >= doc->frames_count)
		return 0;
	list = &doc->frames[number];
	if (list->frames)
		return list->count;
	if (!gm_reader_get(doc->reader, GM_TABLE_FRAMES, number, &record, sizeof(record)))
		return 0;
	if (record.kind == GM_FRAME_NATIVE)
		expand_native(doc, &record, list);
	else if (record.kind == GM_FRAME_PYTHON)
		expand_python(doc, &record, list);
	else
		return 0;
	gm_progress("naming functions", number, doc->frames_count);
	for (unsigned i = 0; i < list->count; i++) {
		gm_rules_apply(&list->frames[i]);
		list->frames[i].memo = gm_zone_alloc(&doc->zone, 1, sizeof(struct gm_frame_memo));
	}
	return list->count;
}

static void expand_stack(struct gm_doc *doc, uint32_t number, struct gm_stack *stack)
{
	uint32_t frames[2 * GM_MAX_DEPTH];
	struct gm_stack_record record;
	unsigned used = 0, count = 0;

	gm_reader_get(doc->reader, GM_TABLE_STACKS, number, &record, sizeof(record));
	for (unsigned i = 0; i < record.frames && used < 2 * GM_MAX_DEPTH; i++) {
		if (!gm_reader_get(doc->reader, GM_TABLE_STACK_FRAMES, record.first + i,
				   &frames[used], sizeof(*frames)))
			break;
		count += expand_frame(doc, frames[used++]);
	}
	stack->frames = gm_zone_alloc(&doc->zone, count + 1, sizeof(*stack->frames));
	stack->lists = doc->frames;
	stack->flags = record.flags;
	for (unsigned i = 0; i < used; i++)
		for (unsigned k = 0; k < expand_frame(doc, frames[i]); k++)
			stack->frames[stack->count++] = gm_frame_number(frames[i], k);
	count = gm_entry_frames(stack);
	stack->frames += count;
	stack->count -= count;
}

const struct gm_stack *gm_doc_stack(struct gm_doc *doc, uint32_t number)
{
	if (number >= doc->stacks_count)
		return NULL;
	if (!doc->stacks[number].frames)
		expand_stack(doc, number, &doc->stacks[number]);
	return &doc->stacks[number];
}
