/*
 * The basics of printing for people, see text.h.
 */
#include "report/render/text/text.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LEAST_WIDTH  40
#define LEAST_LINE   12 /* in which text is wrapped, however far it is indented */
#define LEAST_COLUMN 24 /* to which a text column is shortened */
#define LEAST_LAST   32 /* in which the text of the last column is wrapped; else it stands below */
#define BELOW	     6	/* indent of such a text */

static const char *const codes[] = {"", "\033[1m", "\033[2m", "\033[31m", "\033[33m", "\033[32m"};

unsigned gm_screen_width(void)
{
	const char *columns = getenv("COLUMNS");
	int width = columns ? atoi(columns) : 0;
	struct winsize size;

	if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		width = size.ws_col;
	if (width <= 0)
		width = GM_WIDTH_PIPED;
	return width < LEAST_WIDTH ? LEAST_WIDTH : (unsigned)width;
}

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

/* Formats to memory that the caller frees; never NULL. */
static char *format_text(const char *format, va_list args)
{
	char *text;

	return vasprintf(&text, format, args) < 0 ? gm_realloc(NULL, 1) : text;
}

/* Bytes of the text's first line where it is broken at blanks to that many columns. */
static size_t line_bytes(const char *text, unsigned columns)
{
	size_t best = 0;

	for (size_t at = 0;; at++) {
		if (text[at] && text[at] != ' ')
			continue;
		if (best && gm_text_columns(text) - gm_text_columns(text + at) > columns)
			return best;
		best = at;
		if (!text[at])
			return best;
	}
}

static void wrap_harmless(struct gm_out *out, unsigned column, unsigned indent, const char *text)
{
	for (;; column = indent) {
		unsigned room = out->width > column + LEAST_LINE ? out->width - column : LEAST_LINE;
		size_t bytes = line_bytes(text, room), shown = bytes;

		while (shown && text[shown - 1] == ' ')
			shown--;
		fwrite(text, 1, shown, out->file);
		text += bytes;
		text += strspn(text, " ");
		if (!*text)
			return;
		gm_printf(out->file, "\n%*s", (int)indent, "");
	}
}

/* Wraps without a newline at the end. */
static void wrap(struct gm_out *out, unsigned column, unsigned indent, const char *text)
{
	char *harmless = gm_harmless(text);

	wrap_harmless(out, column, indent, harmless);
	free(harmless);
}

void gm_heading(struct gm_out *out, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	fputc('\n', out->file);
	if (out->color)
		fputs(codes[GM_BOLD], out->file);
	wrap(out, 0, 0, text);
	fputs(out->color ? "\033[0m\n" : "\n", out->file);
	free(text);
}

void gm_wrap_from(struct gm_out *out, unsigned column, unsigned indent, const char *text)
{
	wrap(out, column, indent, text);
	fputc('\n', out->file);
}

void gm_wrap(struct gm_out *out, unsigned indent, const char *text)
{
	gm_wrap_from(out, indent, indent, text);
}

void gm_wrapf(struct gm_out *out, unsigned indent, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	gm_wrap(out, indent, text);
	free(text);
}

unsigned gm_text_columns(const char *text)
{
	unsigned width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

/* Returns the beginning of character number `columns` of UTF-8 text. */
static const char *character(const char *text, unsigned columns)
{
	while (*text && columns--)
		for (text++; ((unsigned char)*text & 0xc0) == 0x80;)
			text++;
	return text;
}

/* "f from g (b.py:2)" of "f (a.py:1) from g (b.py:2)", whose second place leads to the first. */
static const char *without_first_place(struct gm_zone *zone, const char *text)
{
	const char *end = strstr(text, ") from "), *start = end;

	while (start && start > text && *start != '(')
		start--;
	if (!start || start == text || start[-1] != ' ')
		return text;
	return gm_zone_printf(zone, "%.*s%s", (int)(start - 1 - text), text, end + 1);
}

const char *gm_text_shorten(struct gm_zone *zone, const char *text, unsigned columns)
{
	unsigned head = (columns - 1) / 2, all;

	if (gm_text_columns(text) <= columns)
		return text;
	text = without_first_place(zone, text);
	all = gm_text_columns(text);
	if (all <= columns)
		return text;
	return gm_zone_printf(zone, "%.*s\u2026%s", (int)(character(text, head) - text), text,
			      character(text, all - (columns - 1 - head)));
}

void gm_print_more(struct gm_out *out, const char *indent, unsigned count, const char *what)
{
	if (count <= out->top)
		return;
	fputs(indent, out->file);
	gm_printf(out->file, "%u more %s%s (--top)\n", count - out->top, what,
		  count - out->top == 1			   ? ""
			: *what && what[strlen(what) - 1] == 's' ? "es"
								 : "s");
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

/* The layout of a table on the screen. */
struct layout {
	unsigned widths[GM_COLUMNS];
	unsigned keys; /* first columns that stand before each part of a table in several parts */
	bool wraps;    /* the last column */
	bool below;    /* its text follows on lines of its own */
};

static bool is_text(const struct gm_table *table, unsigned column)
{
	return table->titles[column][0] == '<';
}

static const char *title_of(const struct gm_table *table, unsigned column)
{
	return table->titles[column] + is_text(table, column);
}

/* Columns of a line with all columns of the table. */
static unsigned line_of(const struct gm_table *table, const struct layout *layout)
{
	unsigned width = 0;

	for (unsigned c = 0; c < table->columns; c++)
		width += 2 + layout->widths[c];
	return width;
}

/* The widest text column but a last one that may be shortened; table->columns: none. */
static unsigned widest_text(const struct gm_table *table, const struct layout *layout)
{
	unsigned widest = table->columns;

	for (unsigned c = 0; c < table->columns - layout->wraps; c++)
		if (is_text(table, c) && layout->widths[c] > LEAST_COLUMN &&
		    layout->widths[c] > gm_text_columns(title_of(table, c)) &&
		    (widest == table->columns || layout->widths[c] > layout->widths[widest]))
			widest = c;
	return widest;
}

/* Columns of the keys that stand before each part. */
static unsigned keys_of(const struct layout *layout)
{
	unsigned width = 0;

	for (unsigned c = 0; c < layout->keys; c++)
		width += 2 + layout->widths[c];
	return width;
}

/* Lets the last column take what the others leave, if it is text. */
static void wrap_last(const struct gm_table *table, struct layout *layout, unsigned others,
		      unsigned width)
{
	unsigned last = table->columns - 1, room = width > others + 2 ? width - others - 2 : 0;

	if (!last || !is_text(table, last) || layout->widths[last] <= room)
		return;
	layout->wraps = true;
	layout->below = room < LEAST_LAST;
	layout->widths[last] = layout->below ? gm_text_columns(title_of(table, last)) : room;
}

static struct layout lay_out(struct gm_table *table, unsigned rows, unsigned width)
{
	struct layout layout = {.keys = 1}, whole;
	unsigned last = table->columns - 1, c;

	for (c = 0; c < table->columns; c++) {
		layout.widths[c] = gm_text_columns(title_of(table, c));
		for (unsigned r = 0; r < rows; r++) {
			unsigned cell = gm_text_columns(table->cells[r * table->columns + c]);

			if (cell > layout.widths[c])
				layout.widths[c] = cell;
		}
	}
	while (layout.keys < table->columns && is_text(table, layout.keys))
		layout.keys++;
	if (line_of(table, &layout) <= width)
		return layout;
	whole = layout;
	wrap_last(table, &layout, line_of(table, &layout) - 2 - layout.widths[last], width);
	while (line_of(table, &layout) > width &&
	       (c = widest_text(table, &layout)) < table->columns)
		layout.widths[c]--;
	if (line_of(table, &layout) <= width)
		return layout;
	wrap_last(table, &whole, keys_of(&whole), width);
	return whole;
}

static void print_cell(struct gm_out *out, struct gm_table *table, const struct layout *layout,
		       unsigned c, const char *text, bool ends_line)
{
	bool left = is_text(table, c);
	int pad;

	text = gm_text_shorten(&table->zone, text, layout->widths[c]);
	pad = (int)(layout->widths[c] - gm_text_columns(text));
	gm_printf(out->file, "  %*s%s%*s", left ? 0 : pad, "", text, left && !ends_line ? pad : 0,
		"");
}

static void print_last(struct gm_out *out, const struct layout *layout, unsigned indent,
		       unsigned width, const char *text)
{
	struct gm_out cell = *out;

	if (layout->below) {
		gm_printf(out->file, "\n%*s", BELOW, "");
		wrap(out, BELOW, BELOW, text);
		return;
	}
	cell.width = indent + 2 + width;
	fputs("  ", out->file);
	wrap(&cell, indent + 2, indent + 2, text);
}

/*
 * Prints a row, on several lines where the last column wraps: the keys, then columns `from` to
 * `to`.
 */
static void print_row(struct gm_out *out, struct gm_table *table, const struct layout *layout,
		      const char *const *cells, unsigned from, unsigned to, enum gm_style style)
{
	unsigned indent = 0;

	if (out->color && style)
		fputs(codes[style], out->file);
	for (unsigned c = 0; c < to; c++) {
		if (c >= layout->keys && c < from)
			continue;
		if (layout->wraps && c == table->columns - 1 && style != GM_DIM) {
			print_last(out, layout, indent, layout->widths[c], cells[c]);
			continue;
		}
		print_cell(out, table, layout, c, cells[c], c + 1 == to);
		indent += 2 + layout->widths[c];
	}
	fputs(out->color && style ? "\033[0m\n" : "\n", out->file);
}

/* The column behind the last one that fits on a line with the keys and those from `from` on. */
static unsigned fitting(const struct gm_table *table, const struct layout *layout, unsigned from,
			unsigned width)
{
	unsigned used = from ? keys_of(layout) : 0, to = from;

	while (to < table->columns && (to == from || used + 2 + layout->widths[to] <= width))
		used += 2 + layout->widths[to++];
	return to;
}

static void print_table(struct gm_out *out, struct gm_table *table, unsigned rows)
{
	struct layout layout = lay_out(table, rows, out->width);
	const char *titles[GM_COLUMNS] = {0};
	unsigned from = 0, to;

	for (unsigned c = 0; c < table->columns; c++)
		titles[c] = title_of(table, c);
	for (; from < table->columns; from = to) {
		to = fitting(table, &layout, from, out->width);
		print_row(out, table, &layout, titles, from, to, GM_DIM);
		for (unsigned r = 0; r < rows; r++)
			print_row(out, table, &layout, table->cells + r * table->columns, from, to,
				  GM_PLAIN);
	}
}

void gm_table_drop(struct gm_table *table, unsigned column)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < table->cells_count; i++)
		if (i % table->columns != column)
			table->cells[kept++] = table->cells[i];
	table->cells_count = kept;
	table->columns--;
	for (unsigned c = column; c < table->columns; c++)
		table->titles[c] = table->titles[c + 1];
}

void gm_table_end(struct gm_out *out, struct gm_table *table)
{
	unsigned rows = table->cells_count / table->columns;
	unsigned shown = table->whole || rows < out->top ? rows : out->top;

	if (shown)
		print_table(out, table, shown);
	if (rows > shown)
		gm_printf(out->file, "  %u more (--top)\n", rows - shown);
	gm_zone_free(&table->zone);
}

const char *gm_device_name(char text[24], int device)
{
	if (device < 0)
		return strcpy(text, "host");
	snprintf(text, 24, "device %d", device);
	return text;
}
