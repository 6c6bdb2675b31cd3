/*
 * Reading what CPython's str objects say and which line an instruction has. Works on memory that
 * the caller vouches for; calls nothing.
 */
#ifndef GM_STACK_PYTHON_TEXT_H
#define GM_STACK_PYTHON_TEXT_H

#include "stack/python_layout.h"

#include <stddef.h>

/*
 * The text of a str object as UTF-8, NUL-terminated, cut at a character boundary to fit `room`.
 * Lone surrogates and NULs become U+FFFD. Returns its length; 0 where there are no
 * characters.
 */
size_t gm_python_text(const struct gm_python_layout *layout, const void *text, char *to,
		      size_t room);

/*
 * The line of the instruction at byte `position` of a code object's instructions (negative: not
 * begun), from its line table of `bytes` bytes. 0 if the instruction has no line.
 */
uint32_t gm_python_line(enum gm_python_lines kind, const uint8_t *table, size_t bytes,
			int first_line, int position);

#endif
