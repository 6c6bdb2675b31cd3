/*
 * Printing for people: colours only where wanted, tables whose columns fit their content, stacks
 * with the reader's own frames in sight.
 */
#ifndef GM_REPORT_RENDER_TEXT_TEXT_H
#define GM_REPORT_RENDER_TEXT_TEXT_H

#include "report/job/job.h"
#include <stdio.h>

enum gm_style { GM_PLAIN, GM_BOLD, GM_DIM, GM_RED, GM_YELLOW, GM_GREEN };

struct gm_out {
	FILE *file;
	bool color;
	unsigned top;	/* rows of a list */
	bool full;	/* whole stacks, whatever the width */
	unsigned width; /* columns of a line */
};

#define GM_WIDTH_PIPED 100 /* `width` where the output is no terminal */

/* Columns of standard output: as COLUMNS says, else the terminal's, else GM_WIDTH_PIPED. */
unsigned gm_screen_width(void);

/* Prints as printf, in a style. */
void gm_print(struct gm_out *out, enum gm_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A heading of a section. */
void gm_heading(struct gm_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Text wrapped at the width, with a newline at its end; the cursor is in column `indent`, by which
 * every other line is indented.
 */
void gm_wrap(struct gm_out *out, unsigned indent, const char *text);

/* Wraps text where the cursor is in another column than the indent. */
void gm_wrap_from(struct gm_out *out, unsigned column, unsigned indent, const char *text);
void gm_wrapf(struct gm_out *out, unsigned indent, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Columns that a text takes on the screen: its characters, not its bytes. */
unsigned gm_text_columns(const char *text);

/*
 * The text in at most `columns` columns: a long one loses the first of two places, then its middle.
 * In the zone.
 */
const char *gm_text_shorten(struct gm_zone *zone, const char *text, unsigned columns);

/*
 * The line behind a list of which only the first `out->top` entries were shown; none if all were.
 */
void gm_print_more(struct gm_out *out, const char *indent, unsigned count, const char *what);

#define GM_COLUMNS 14

struct gm_table {
	struct gm_zone zone;
	const char
		*titles[GM_COLUMNS]; /* a title that begins with '<' is of a left-aligned column */
	unsigned columns;
	const char **cells; /* row after row */
	unsigned cells_count;
	bool whole; /* all rows are shown, whatever --top says */
};

/* A table with these column titles, ended by NULL. */
void gm_table_begin(struct gm_table *table, const char *const *titles);
void gm_table_cell(struct gm_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void gm_table_size(struct gm_table *table, uint64_t bytes);
void gm_table_count(struct gm_table *table, uint64_t count);

/* Takes a column out, behind the last cell, where it says nothing. */
void gm_table_drop(struct gm_table *table, unsigned column);

/*
 * Prints the table, indented by two, and frees it: as many rows as --top says, and how many more
 * there are. Prints nothing if it has no row. A table that is wider than a line wraps the text of
 * its last column, then shortens other texts; if that is not enough, the columns that do not fit
 * follow as a second table, with the first columns again.
 */
void gm_table_end(struct gm_out *out, struct gm_table *table);

/* "device 0", "host" */
const char *gm_device_name(char text[24], int device);

#endif
