/*
 * The parts of which the screens of `top` are made: lines of a width, as many as fit, and bars.
 */
#ifndef GM_REPORT_RENDER_TOP_TOP_LINES_H
#define GM_REPORT_RENDER_TOP_TOP_LINES_H

#include "report/render/text/text.h"

/* The destination of lines. */
struct gm_top_out {
	unsigned width, left; /* lines that still fit */
	void (*emit)(void *data, enum gm_style style, const char *line);
	void *data;
};

/* Emits a line, cut to the width; nothing once no more lines fit. */
void gm_top_line(struct gm_top_out *out, enum gm_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* "####--    ": used, then up to the peak, of the whole. `bar` has width + 1 bytes. */
void gm_top_bar(char *bar, unsigned width, uint64_t used, uint64_t peak, uint64_t whole);

#endif
