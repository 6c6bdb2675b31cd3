/*
 * Lines and bars of the screens of `top`, see top_lines.h.
 */
#include "report/render/top/top_lines.h"
#include "report/support/print.h"
#include <stdarg.h>

#define LINE_BYTES 1024

/* Bytes of the first `columns` characters of a text; a character that is wider counts as one. */
static size_t cut(const char *text, unsigned columns)
{
	size_t bytes = 0;

	while (text[bytes]) {
		if (((unsigned char)text[bytes] & 0xc0) != 0x80 && columns-- == 0)
			break;
		bytes++;
	}
	return bytes;
}

void gm_top_line(struct gm_top_out *out, enum gm_style style, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	if (!out->left)
		return;
	va_start(args, format);
	gm_vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	text[cut(text, out->width)] = '\0';
	out->left--;
	out->emit(out->data, style, text);
}

void gm_top_bar(char *bar, unsigned width, uint64_t used, uint64_t peak, uint64_t whole)
{
	for (unsigned i = 0; i < width; i++) {
		double at = ((double)i + 0.5) / width * (double)whole;

		bar[i] = at < (double)used ? '#' : at < (double)peak ? '-' : ' ';
	}
	bar[width] = '\0';
}
