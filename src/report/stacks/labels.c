/*
 * Choosing the frame that names a stack, and telling equal names apart, see labels.h. Works on
 * classified frames; calls nothing but the formatting of frames.
 */
#include "report/stacks/labels.h"
#include "report/doc/frames.h"
#include <stdlib.h>
#include <string.h>

#define MOST_CALLERS 2 /* "a from b from c" is as long as a label gets */

bool gm_frame_own(const struct gm_frame *frame)
{
	return !frame->plumbing && !frame->installed && !frame->toolkit;
}

const struct gm_frame *gm_stack_next_own(const struct gm_stack *stack, unsigned *index)
{
	while (++*index < stack->count)
		if (gm_frame_own(gm_stack_frame(stack, *index)))
			return gm_stack_frame(stack, *index);
	return NULL;
}

/* The ranks of frames as the name of a stack, from 0: the innermost of the best rank names it. */
enum rank { OWN_PYTHON, ANY_PYTHON, OWN_NAMED, ANY_NAMED, NAMELESS, CUDA_OR_PLUMBING };

static enum rank rank_of(const struct gm_frame *frame)
{
	if (frame->python)
		return gm_frame_own(frame) ? OWN_PYTHON : ANY_PYTHON;
	if (frame->plumbing)
		return CUDA_OR_PLUMBING;
	if (!frame->function || frame->toolkit)
		return NAMELESS;
	return frame->installed ? ANY_NAMED : OWN_NAMED;
}

unsigned gm_stack_label_index(const struct gm_stack *stack)
{
	unsigned best = 0;

	for (unsigned i = 1; stack && i < stack->count; i++)
		if (rank_of(gm_stack_frame(stack, i)) < rank_of(gm_stack_frame(stack, best)))
			best = i;
	return best;
}

const struct gm_frame *gm_stack_label_frame(const struct gm_stack *stack)
{
	return stack && stack->count ? gm_stack_frame(stack, gm_stack_label_index(stack)) : NULL;
}

static const struct gm_frame *toolkit_frame(const struct gm_stack *stack)
{
	for (unsigned i = 0; stack && i < stack->count; i++) {
		const struct gm_frame *frame = gm_stack_frame(stack, i);

		if (frame->toolkit)
			return frame;
		if (!frame->plumbing)
			return NULL;
	}
	return NULL;
}

const char *gm_stack_toolkit(const struct gm_stack *stack)
{
	const struct gm_frame *frame = toolkit_frame(stack);
	const char *slash = frame ? strrchr(frame->module, '/') : NULL;

	return slash ? slash + 1 : frame ? frame->module : NULL;
}

/* Moves `index` outwards to the next frame that says who called; NULL if there is none. */
static const struct gm_frame *next_caller(const struct gm_stack *stack, unsigned *index)
{
	enum rank rank = rank_of(gm_stack_frame(stack, *index));

	if (rank >= NAMELESS)
		return NULL;
	while (++*index < stack->count)
		if (rank_of(gm_stack_frame(stack, *index)) == rank)
			return gm_stack_frame(stack, *index);
	return NULL;
}

/* A frame names many stacks: its text is kept once. */
static const char *short_text(struct gm_doc *doc, const struct gm_frame *frame)
{
	if (!frame->memo)
		return gm_zone_strdup(&doc->zone, gm_format_frame_short(frame));
	if (!frame->memo->label)
		frame->memo->label = gm_zone_strdup(&doc->zone, gm_format_frame_short(frame));
	return frame->memo->label;
}

static const char *base_label(struct gm_doc *doc, const struct gm_stack *stack)
{
	const struct gm_frame *frame = gm_stack_label_frame(stack), *library;
	const char *text;

	if (!frame)
		return "an unknown place (no stack)";
	text = short_text(doc, frame);
	library = toolkit_frame(stack);
	if (!library || library == frame)
		return text;
	return gm_zone_printf(&doc->zone, "%s in %s", text, gm_stack_toolkit(stack));
}

/* A stack on its way to its label. */
struct entry {
	struct gm_stack *stack;
	const struct gm_frame *caller; /* the outermost frame that the label names; NULL: no more */
	unsigned index;		       /* its position in the stack */
	const char *label;
	unsigned level;
	bool distinct;
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	return strcmp(x->label, y->label);
}

/* A function of a header is a helper that many call: its name alone says little. */
static bool in_header(const struct gm_frame *frame)
{
	const char *dot = frame && !frame->python && frame->file ? strrchr(frame->file, '.') : NULL;

	return dot && (dot[1] == 'h' || strcmp(dot, ".cuh") == 0 || strcmp(dot, ".inl") == 0);
}

/*
 * Marks what is alone with its label within its level, and in the first round is no helper. Returns
 * how many are not.
 */
static unsigned mark_distinct(struct entry *entries, unsigned count, bool names_callers)
{
	unsigned equal = 0;

	qsort(entries, count, sizeof(*entries), compare_entries);
	for (unsigned i = 0; i < count; i++) {
		entries[i].distinct =
			!(names_callers && in_header(entries[i].caller)) &&
			(i == 0 || compare_entries(&entries[i - 1], &entries[i]) != 0) &&
			(i + 1 == count || compare_entries(&entries[i], &entries[i + 1]) != 0);
		equal += !entries[i].distinct;
	}
	return equal;
}

/* Returns "label from caller". What calls many stacks mostly calls those of one label in turn. */
static const char *label_from(struct gm_doc *doc, const char *label, const struct gm_frame *caller)
{
	struct gm_frame_memo own = {0}, *memo = caller->memo ? caller->memo : &own;

	if (!memo->called || strcmp(memo->called, label) != 0) {
		memo->called = label;
		memo->from = gm_zone_printf(&doc->zone, "%s from %s", label,
					    gm_format_frame_short(caller));
	}
	return memo->from;
}

static void name_callers(struct gm_doc *doc, struct entry *entries, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct entry *entry = &entries[i];

		if (entry->distinct || !entry->caller)
			continue;
		entry->caller = next_caller(entry->stack, &entry->index);
		if (entry->caller)
			entry->label = label_from(doc, entry->label, entry->caller);
	}
}

void gm_label_stacks(struct gm_doc *doc)
{
	struct entry *entries = gm_realloc(NULL, (doc->sites_count + 1) * sizeof(*entries));
	unsigned count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		uint32_t number = doc->sites[i].record.stack;
		struct gm_stack *stack;

		if (number >= doc->stacks_count || doc->stacks[number].label)
			continue;
		stack = &doc->stacks[number];
		stack->label = base_label(doc, stack);
		entries[count++] = (struct entry){.stack = stack,
						  .caller = gm_stack_label_frame(stack),
						  .index = gm_stack_label_index(stack),
						  .label = stack->label,
						  .level = doc->sites[i].record.level};
	}
	for (unsigned i = 0; i < MOST_CALLERS && count && mark_distinct(entries, count, i == 0);
	     i++)
		name_callers(doc, entries, count);
	for (unsigned i = 0; i < count; i++)
		entries[i].stack->label = entries[i].label;
	free(entries);
}

const char *gm_stack_label(struct gm_doc *doc, const struct gm_stack *stack)
{
	return stack && stack->label ? stack->label : base_label(doc, stack);
}
