/*
 * The text of a frame: the function that it runs and its line (internal.h). A frame notes its
 * instruction, to 3.10 as an index, later as an address; the code object has a table of lines,
 * which src/stack reads for the frames of recorded stacks.
 */
#include "holders/internal.h"

#include "stack/python_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NAME  512u
#define MOST_TABLE (1u << 20)

static bool word(struct gm_cpython *python, uint64_t address, uint64_t *value)
{
	return gm_cpython_word(python, address, value);
}

/* The position in the code's instructions, in bytes; negative: it has not begun. */
static int position_of(struct gm_cpython *python, uint64_t frame, uint64_t code)
{
	const struct gm_python_layout *at = &python->layout;
	uint64_t instruction = 0;
	int32_t last = -1;

	if (!at->code_code) {
		gm_memory_read(python->memory, frame + at->frame_position, &last, sizeof(last));
		return last < 0 ? -1 : python->minor == 10 ? last * 2 : last;
	}
	if (!word(python, frame + at->frame_position, &instruction) ||
	    instruction < code + at->code_code || instruction - code > MOST_TABLE)
		return -1;
	return (int)(instruction - code - at->code_code);
}

/* 0: not known. */
static uint32_t line_of(struct gm_cpython *python, uint64_t frame, uint64_t code)
{
	const struct gm_python_layout *at = &python->layout;
	int position = at->minor ? position_of(python, frame, code) : -1;
	uint64_t table, bytes;
	uint32_t first = 0, line = 0;
	unsigned char *copy;

	if (position < 0 || !word(python, code + at->code_lines, &table) ||
	    !word(python, table + GM_PY_SIZE, &bytes) || bytes > MOST_TABLE ||
	    !gm_memory_read(python->memory, code + at->code_firstlineno, &first, sizeof(first)))
		return 0;
	copy = malloc(bytes + 1);
	if (copy && gm_memory_read(python->memory, table + GM_PY_BYTES_DATA, copy, bytes))
		line = gm_python_line(at->lines, copy, bytes, (int)first, position);
	free(copy);
	return line;
}

void gm_cpython_frame_text(struct gm_cpython *python, uint64_t frame, bool line, char *text,
			   size_t bytes)
{
	const struct gm_python_offsets *at = python->offsets;
	char name[MOST_NAME] = "?", file[MOST_NAME] = "?";
	uint64_t code = 0, object = 0;
	const char *slash;
	uint32_t number;

	if (word(python, frame + at->frame_code, &code))
		code = gm_cpython_untag(python, code);
	if (word(python, code + at->code_name, &object))
		gm_cpython_text(python, object, name, sizeof(name));
	if (word(python, code + at->code_filename, &object))
		gm_cpython_text(python, object, file, sizeof(file));
	number = line ? line_of(python, frame, code) : 0;
	slash = strrchr(file, '/');
	if (number)
		snprintf(text, bytes, "%.200s (%.200s:%u)", name, slash ? slash + 1 : file, number);
	else
		snprintf(text, bytes, "%.200s (%.200s)", name, slash ? slash + 1 : file);
}
