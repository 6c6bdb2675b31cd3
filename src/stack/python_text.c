/*
 * Text and lines of CPython's objects (python_text.h).
 */
#include "stack/python_text.h"

#include <string.h>

/* `kind` is the bytes per character; `compact`: the text follows its header. */
struct text_state {
	unsigned kind;
	bool compact, ascii;
};

static struct text_state state_of(const struct gm_python_layout *layout, const char *text)
{
	uint32_t state;

	memcpy(&state, text + GM_PY_TEXT_STATE, sizeof(state));
	state = gm_python_text_state(layout, state);
	return (struct text_state){state & 7, state >> 3 & 1, state >> 4 & 1};
}

static uint32_t character(const char *data, unsigned kind, size_t index)
{
	switch (kind) {
	case 1:
		return ((const uint8_t *)data)[index];
	case 2:
		return ((const uint16_t *)data)[index];
	default:
		return ((const uint32_t *)data)[index];
	}
}

/* Writes one character if it fits; returns its length, 0 if it does not. NUL would end the text. */
static size_t put(uint32_t c, char *to, size_t room)
{
	size_t bytes;

	if (!c || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	if (bytes > room)
		return 0;
	for (size_t i = bytes; i > 1; i--) {
		to[i - 1] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	to[0] = (char)(bytes == 1 ? c : (0xf00 >> bytes & 0xff) | c);
	return bytes;
}

/* The characters: after the header, or (of a class of the program's own) where it points. */
static const char *characters(const struct gm_python_layout *layout, const char *text,
			      struct text_state state)
{
	const char *apart;

	if (state.compact)
		return text + (state.ascii ? layout->ascii_bytes : layout->compact_bytes);
	memcpy(&apart, text + layout->compact_bytes, sizeof(apart));
	return apart;
}

size_t gm_python_text(const struct gm_python_layout *layout, const void *text, char *to,
		      size_t room)
{
	struct text_state state = state_of(layout, text);
	const char *data = characters(layout, text, state);
	size_t used = 0;
	int64_t length;

	memcpy(&length, (const char *)text + GM_PY_TEXT_LENGTH, sizeof(length));
	to[0] = '\0';
	if (!data || length < 0 || (state.kind != 1 && state.kind != 2 && state.kind != 4))
		return 0;
	for (int64_t i = 0; i < length; i++) {
		size_t bytes =
			put(character(data, state.kind, (size_t)i), to + used, room - 1 - used);

		if (!bytes)
			break;
		used += bytes;
	}
	to[used] = '\0';
	return used;
}

/* Objects/lnotab_notes.txt: pairs of unsigned address and signed line steps. */
static uint32_t line_by_lnotab(const uint8_t *table, size_t bytes, int line, int position)
{
	int address = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		address += table[i];
		if (address > position)
			break;
		line += (int8_t)table[i + 1];
	}
	return line > 0 ? (uint32_t)line : 0;
}

/* The same file in 3.10: each pair is a range of instructions and the step to its line. */
static uint32_t line_by_pairs(const uint8_t *table, size_t bytes, int line, int position)
{
	int end = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		int step = (int8_t)table[i + 1];

		end += table[i];
		if (step != -128)
			line += step;
		if (end > position)
			return step == -128 || line < 0 ? 0 : (uint32_t)line;
	}
	return 0;
}

/* A variable-length number: six bits a byte, low ones first, bit 6 says that more follow. */
static unsigned read_number(const uint8_t *table, size_t bytes, size_t *at)
{
	unsigned number = 0, shift = 0, byte;

	do {
		if (*at >= bytes || shift > 30)
			return 0;
		byte = table[(*at)++];
		number |= (byte & 63) << shift;
		shift += 6;
	} while (byte & 64);
	return number;
}

/* The step in lines of the entry that begins at `at`; Objects/locations.md. */
static int location_step(const uint8_t *table, size_t bytes, size_t at, unsigned code)
{
	unsigned number;

	switch (code) {
	case 10:
	case 11:
	case 12:
		return (int)code - 10;
	case 13:
	case 14:
		at++;
		number = read_number(table, bytes, &at);
		return number & 1 ? -(int)(number >> 1) : (int)(number >> 1);
	default:
		return 0;
	}
}

static uint32_t line_by_locations(const uint8_t *table, size_t bytes, int line, int position)
{
	int end = 0;

	for (size_t at = 0; at < bytes;) {
		unsigned code = table[at] >> 3 & 15;

		line += location_step(table, bytes, at, code);
		end += ((table[at] & 7) + 1) * 2;
		if (end > position)
			return code == 15 || line < 0 ? 0 : (uint32_t)line;
		for (at++; at < bytes && !(table[at] & 128); at++)
			;
	}
	return 0;
}

uint32_t gm_python_line(enum gm_python_lines kind, const uint8_t *table, size_t bytes,
			int first_line, int position)
{
	if (position < 0)
		return first_line > 0 ? (uint32_t)first_line : 0;
	switch (kind) {
	case GM_LINES_LNOTAB:
		return line_by_lnotab(table, bytes, first_line, position);
	case GM_LINES_PAIRS:
		return line_by_pairs(table, bytes, first_line, position);
	case GM_LINES_LOCATIONS:
		return line_by_locations(table, bytes, first_line, position);
	}
	return 0;
}
