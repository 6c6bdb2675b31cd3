/*
 * The basics of printing for people, see text.h.
 */
#include "report/render/text/text.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 100

static const char *const codes[] = {"", "\033[1m", "\033[2m", "\033[31m", "\033[33m", "\033[32m"};

void gm_print(struct gm_out *out, enum gm_style style, const char *format, ...)
{
	va_list args;

	if (out->color && style)
		fputs(codes[style], out->file);
	va_start(args, format);
	gm_vprintf(out->file, format, args);
	va_end(args);
	if (out->color && style)
		fputs("\033[0m", out->file);
}

void gm_heading(struct gm_out *out, const char *format, ...)
{
	va_list args;

	fputc('\n', out->file);
	if (out->color)
		fputs(codes[GM_BOLD], out->file);
	va_start(args, format);
	gm_vprintf(out->file, format, args);
	va_end(args);
	fputs(out->color ? "\033[0m\n" : "\n", out->file);
}

static void wrap(struct gm_out *out, unsigned indent, const char *text)
{
	unsigned column = indent;

	while (*text) {
		unsigned word = (unsigned)strcspn(text, " ");

		if (column > indent && column + word > WIDTH) {
			gm_printf(out->file, "\n%*s", (int)indent, "");
			column = indent;
		}
		fwrite(text, 1, word, out->file);
		column += word;
		text += word;
		if (*text == ' ') {
			text++;
			if (column + 1 + strcspn(text, " ") <= WIDTH)
				fputc(' ', out->file);
			column++;
		}
	}
	fputc('\n', out->file);
}

void gm_wrap(struct gm_out *out, unsigned indent, const char *text)
{
	char *harmless = gm_harmless(text);

	wrap(out, indent, harmless);
	free(harmless);
}

void gm_table_begin(struct gm_table *table, const char *const *titles)
{
	memset(table, 0, sizeof(*table));
	while (titles[table->columns] && table->columns < GM_COLUMNS) {
		table->titles[table->columns] = titles[table->columns];
		table->columns++;
	}
}

void gm_table_cell(struct gm_table *table, const char *format, ...)
{
	const char **slot =
		gm_zone_push(&table->zone, &table->cells, &table->cells_count, sizeof(*slot));
	char text[512];
	va_list args;

	va_start(args, format);
	gm_vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	*slot = gm_zone_strdup(&table->zone, text);
}

void gm_table_size(struct gm_table *table, uint64_t bytes)
{
	char text[GM_FORMAT_BYTES];

	gm_table_cell(table, "%s", gm_format_size(text, bytes));
}

void gm_table_count(struct gm_table *table, uint64_t count)
{
	char text[GM_FORMAT_BYTES];

	gm_table_cell(table, "%s", gm_format_count(text, count));
}

/* Columns that a text takes on the screen: its characters, not its bytes. */
static unsigned width_of(const char *text)
{
	unsigned width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_row(struct gm_out *out, const struct gm_table *table, const char *const *cells,
		      const unsigned *widths, enum gm_style style)
{
	if (out->color && style)
		fputs(codes[style], out->file);
	for (unsigned c = 0; c < table->columns; c++) {
		bool left = table->titles[c][0] == '<', last = c + 1 == table->columns;
		int pad = (int)(widths[c] - width_of(cells[c]));

		gm_printf(out->file, "  %*s%s%*s", left ? 0 : pad, "", cells[c],
			left && !last ? pad : 0, "");
	}
	fputs(out->color && style ? "\033[0m\n" : "\n", out->file);
}

void gm_table_end(struct gm_out *out, struct gm_table *table)
{
	unsigned rows = table->cells_count / table->columns, widths[GM_COLUMNS] = {0};
	const char *titles[GM_COLUMNS] = {0};

	for (unsigned c = 0; c < table->columns; c++) {
		titles[c] = table->titles[c] + (table->titles[c][0] == '<');
		widths[c] = width_of(titles[c]);
		for (unsigned r = 0; r < rows; r++) {
			unsigned width = width_of(table->cells[r * table->columns + c]);

			widths[c] = width > widths[c] ? width : widths[c];
		}
	}
	if (rows)
		print_row(out, table, titles, widths, GM_DIM);
	for (unsigned r = 0; r < rows; r++)
		print_row(out, table, table->cells + r * table->columns, widths, GM_PLAIN);
	gm_zone_free(&table->zone);
}

const char *gm_device_name(char text[24], int device)
{
	if (device < 0)
		return strcpy(text, "host");
	snprintf(text, 24, "device %d", device);
	return text;
}
