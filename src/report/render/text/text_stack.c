/*
 * Stacks for people: the reader's own frames first, then what they went through, folded so that it
 * fits; everything as it was recorded where all is wanted.
 */
#include "report/render/text/text_stack.h"
#include "report/doc/frames.h"
#include "report/render/text/text.h"
#include "report/stacks/labels.h"
#include "report/support/print.h"
#include <inttypes.h>
#include <string.h>

#define OWN_FRAMES   12 /* shown of a stack, unless all are wanted */
#define OTHER_FRAMES 6
#define LEAST_PATH   28 /* columns that a path gets however long the function's name is */
#define LEAST_NAME   24
#define LINE_NUMBER  6 /* colon, five digits */

/* "f(std::vector<int, ...> const&)" is cut at its end where it is long. */
static void print_name(struct gm_out *out, enum gm_style style, const char *name, size_t room)
{
	size_t length = strlen(name);

	if (length <= room || out->full)
		gm_print(out, style, "%s", name);
	else
		gm_print(out, style, "%.*s...", (int)room - 3, name);
}

/*
 * Returns the part of a long path that follows the omitted middle: from its package on, else as
 * early as fits.
 */
static const char *path_tail(const char *path, size_t room)
{
	const char *tail = NULL, *slash;

	for (const char *at = path; (at = strstr(at, "-packages/")); at += 9)
		tail = at + 9;
	if (tail && strlen(tail) <= room)
		return tail;
	tail = path + strlen(path) - room;
	slash = strchr(tail, '/');
	return slash ? slash : tail;
}

/* Long paths lose their middle: where it is and what it is called stay. */
static void print_path(struct gm_out *out, const char *path, size_t room)
{
	size_t length = strlen(path), head;

	if (length <= room || out->full) {
		gm_print(out, GM_PLAIN, "  %s", path);
		return;
	}
	head = path[0] == '/' ? 2 + strcspn(path + 1, "/") : 1 + strcspn(path, "/");
	if (head > room / 3)
		head = 0;
	gm_print(out, GM_PLAIN, "  %.*s…%s", (int)head, path, path_tail(path, room - head - 1));
}

/*
 * Prints a frame on one line; `times` over one are calls of the same function that are told
 * together.
 */
static void print_frame(struct gm_out *out, const struct gm_frame *frame, unsigned indent,
			enum gm_style style, unsigned times)
{
	const char *module = gm_module_name(frame), *path = frame->file;
	size_t room = out->width > indent ? out->width - indent : 0;
	size_t place = path ? strlen(path) + 2 + LINE_NUMBER : module ? strlen(module) + 2 : 0;
	size_t name = frame->function ? gm_text_columns(frame->function) : 0;
	char repeated[32] = "";

	if (times > 1)
		snprintf(repeated, sizeof(repeated), "… %u × ", times);
	room -= gm_text_columns(repeated) < room ? gm_text_columns(repeated) : room;
	if (path && name + place > room && place > LEAST_PATH + 2 + LINE_NUMBER)
		place = LEAST_PATH + 2 + LINE_NUMBER;
	name = name + place <= room ? name : room > place + LEAST_NAME ? room - place : LEAST_NAME;
	gm_printf(out->file, "%*s", (int)indent, "");
	gm_print(out, GM_DIM, "%s", repeated);
	if (frame->function)
		print_name(out, style, frame->function, name);
	else if (frame->python)
		gm_print(out, style, "unknown");
	else
		gm_print(out, style, "%s+0x%" PRIx64, module ? module : "unknown", frame->offset);
	if (path)
		print_path(out, path,
			   room > name + 2 + LINE_NUMBER + LEAST_PATH
				   ? room - name - 2 - LINE_NUMBER
				   : LEAST_PATH);
	if (path && frame->line)
		gm_print(out, GM_PLAIN, ":%u", frame->line);
	if (!path && frame->function && module)
		gm_print(out, GM_DIM, "  %s", module);
	if (frame->inlined)
		gm_print(out, GM_DIM, "  (inlined)");
	fputc('\n', out->file);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Calls of one function, from whatever lines; of nameless code only the same place. */
static bool same_function(const struct gm_frame *a, const struct gm_frame *b)
{
	if (a->python != b->python || !same_text(a->function, b->function) ||
	    !same_text(a->module, b->module) || !same_text(a->file, b->file))
		return false;
	return a->function || a->offset == b->offset;
}

/* The parts of a stack: what is shown first, then the rest. */
enum part { OWN, PYTHON, NATIVE, NAMELESS, PLUMBING, PARTS };

static enum part part_of(const struct gm_frame *frame)
{
	if (frame->plumbing)
		return PLUMBING;
	if (gm_frame_own(frame))
		return OWN;
	return frame->python ? PYTHON : frame->function ? NATIVE : NAMELESS;
}

/* Counts all frames of the same function and part; 0 if one of them came before. */
static unsigned count_same(const struct gm_stack *stack, unsigned index, enum part part)
{
	unsigned count = 0;

	for (unsigned i = 0; i < stack->count; i++) {
		if (part_of(gm_stack_frame(stack, i)) != part ||
		    !same_function(gm_stack_frame(stack, i), gm_stack_frame(stack, index)))
			continue;
		if (i < index)
			return 0;
		count++;
	}
	return count;
}

/* Frames of a part: each function once, at most *most lines, which are taken off. */
static unsigned print_part(struct gm_out *out, const struct gm_stack *stack, unsigned indent,
			   enum part part, enum gm_style style, unsigned *most)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < stack->count && *most; i++) {
		unsigned times;

		if (part_of(gm_stack_frame(stack, i)) != part)
			continue;
		times = count_same(stack, i, part);
		if (!times)
			continue;
		print_frame(out, gm_stack_frame(stack, i), indent, style, times);
		shown += times;
		(*most)--;
	}
	return shown;
}

static void print_all(struct gm_out *out, const struct gm_stack *stack, unsigned indent)
{
	for (unsigned i = 0; i < stack->count; i++) {
		enum part part = part_of(gm_stack_frame(stack, i));

		print_frame(out, gm_stack_frame(stack, i), indent,
			    part == OWN	       ? GM_BOLD
			    : part == PLUMBING ? GM_DIM
					       : GM_PLAIN,
			    1);
	}
}

/* Prints what a person looks for; returns how many such frames were left out. */
static unsigned print_folded(struct gm_out *out, const struct gm_stack *stack, unsigned indent)
{
	unsigned parts[PARTS] = {0}, most = OWN_FRAMES, shown;
	enum gm_style style;

	for (unsigned i = 0; i < stack->count; i++)
		parts[part_of(gm_stack_frame(stack, i))]++;
	if (parts[PLUMBING] == stack->count) /* better than nothing */
		return stack->count - print_part(out, stack, indent, PLUMBING, GM_DIM, &most);
	shown = print_part(out, stack, indent, OWN, GM_BOLD, &most);
	style = shown ? GM_DIM : GM_BOLD;
	if (shown)
		most = OTHER_FRAMES;
	shown += print_part(out, stack, indent, PYTHON, style, &most);
	shown += print_part(out, stack, indent, NATIVE, style, &most);
	if (!shown)
		shown = print_part(out, stack, indent, NAMELESS, style, &most);
	return stack->count - parts[PLUMBING] - shown;
}

void gm_print_stack(struct gm_out *out, const struct gm_stack *stack, unsigned indent)
{
	unsigned left = 0;

	if (stack && stack->flags & GM_STACK_NO_ROOM) {
		gm_print(out, GM_DIM, "%*s%s; raise GPUMEMTRACE_MAX_FILE or free disk space\n",
			 (int)indent, "", stack->label);
		return;
	}
	if (!stack || !stack->count) {
		gm_print(out, GM_DIM, "%*sno stack was recorded\n", (int)indent, "");
		return;
	}
	if (out->full)
		print_all(out, stack, indent);
	else
		left = print_folded(out, stack, indent);
	if (left)
		gm_print(out, GM_DIM, "%*s… %u more frame%s (--full)\n", (int)indent, "", left,
			 left == 1 ? "" : "s");
	if (stack->flags & (GM_STACK_TRUNCATED | GM_STACK_PYTHON_TRUNCATED))
		gm_print(out, GM_DIM, "%*s(cut at GPUMEMTRACE_DEPTH)\n", (int)indent, "");
}
