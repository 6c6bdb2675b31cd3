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
	unsigned top; /* rows of a list */
	bool full;    /* whole stacks */
};

/* Prints as printf, in a style. */
void gm_print(struct gm_out *out, enum gm_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A heading of a section. */
void gm_heading(struct gm_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text wrapped at 100 columns; every line but the first is indented by `indent`. */
void gm_wrap(struct gm_out *out, unsigned indent, const char *text);

#define GM_COLUMNS 14

struct gm_table {
	struct gm_zone zone;
	const char
		*titles[GM_COLUMNS]; /* a title that begins with '<' is of a left-aligned column */
	unsigned columns;
	const char **cells; /* row after row */
	unsigned cells_count;
};

/* A table with these column titles, ended by NULL. */
void gm_table_begin(struct gm_table *table, const char *const *titles);
void gm_table_cell(struct gm_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void gm_table_size(struct gm_table *table, uint64_t bytes);
void gm_table_count(struct gm_table *table, uint64_t count);

/* Prints the table, indented by two, and frees it. Prints nothing if it has no row. */
void gm_table_end(struct gm_out *out, struct gm_table *table);

/* "device 0", "host" */
const char *gm_device_name(char text[24], int device);

#endif
