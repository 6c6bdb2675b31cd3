/*
 * The basics of printing for people, see text.h.
 */
#include "report/render/text.h"
#include "report/classify.h"
#include "report/format.h"
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define WIDTH	    100
#define FOLD_FRAMES 12 /* frames shown of a stack, unless all are wanted */
#define LONG_NAME   96

static const char *const codes[] = {"", "\033[1m", "\033[2m", "\033[31m", "\033[33m", "\033[32m"};

void gm_print(struct gm_out *out, enum gm_style style, const char *format, ...)
{
	va_list args;

	if (out->color && style)
		fputs(codes[style], out->file);
	va_start(args, format);
	vfprintf(out->file, format, args);
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
	vfprintf(out->file, format, args);
	va_end(args);
	fputs(out->color ? "\033[0m\n" : "\n", out->file);
}

void gm_wrap(struct gm_out *out, unsigned indent, const char *text)
{
	unsigned column = indent;

	while (*text) {
		unsigned word = (unsigned)strcspn(text, " ");

		if (column > indent && column + word > WIDTH) {
			fprintf(out->file, "\n%*s", (int)indent, "");
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
		gm_arena_push(&table->arena, &table->cells, &table->cells_count, sizeof(*slot));
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	*slot = gm_arena_strdup(&table->arena, text);
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

		fprintf(out->file, "  %*s%s%*s", left ? 0 : pad, "", cells[c],
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
	gm_arena_free(&table->arena);
}

const char *gm_device_name(char text[24], int device)
{
	if (device < 0)
		return strcpy(text, "host");
	snprintf(text, 24, "device %d", device);
	return text;
}

/* "f(std::vector<int, ...> const&)" is cut at its arguments where it is long. */
static void print_name(struct gm_out *out, enum gm_style style, const char *name)
{
	size_t length = strlen(name);

	if (length <= LONG_NAME || out->full)
		gm_print(out, style, "%s", name);
	else
		gm_print(out, style, "%.*s...", LONG_NAME - 3, name);
}

/* Long paths keep their end, which tells most. */
static const char *short_path(const struct gm_out *out, const char *path)
{
	size_t length = strlen(path);
	const char *at;

	if (length <= 60 || out->full)
		return path;
	at = strchr(path + length - 57, '/');
	return at ? at + 1 : path + length - 57;
}

static void print_frame(struct gm_out *out, const struct gm_frame *frame, unsigned indent)
{
	enum gm_style style = frame->plumbing ? GM_DIM : GM_BOLD;
	const char *module = gm_module_name(frame), *path = frame->file;

	fprintf(out->file, "%*s", (int)indent, "");
	if (frame->function)
		print_name(out, style, frame->function);
	else
		gm_print(out, style, "%s+0x%" PRIx64, module ? module : "unknown", frame->offset);
	if (path)
		gm_print(out, GM_PLAIN, "  %s%s", short_path(out, path) == path ? "" : ".../",
			 short_path(out, path));
	if (path && frame->line)
		gm_print(out, GM_PLAIN, ":%u", frame->line);
	if (!path && frame->function && module)
		gm_print(out, GM_DIM, "  %s", module);
	if (frame->inlined)
		gm_print(out, GM_DIM, "  (inlined)");
	fputc('\n', out->file);
}

static bool same_frame(const struct gm_frame *a, const struct gm_frame *b)
{
	return a->python == b->python && a->line == b->line && a->offset == b->offset &&
	       a->module == b->module &&
	       (a->function == b->function ||
		(a->function && b->function && strcmp(a->function, b->function) == 0));
}

void gm_print_stack(struct gm_out *out, const struct gm_stack *stack, unsigned indent)
{
	unsigned shown = 0, own = 0, i;

	if (!stack || !stack->count) {
		gm_print(out, GM_DIM, "%*sno stack was recorded\n", (int)indent, "");
		return;
	}
	for (i = 0; i < stack->count; i++)
		own += !stack->frames[i].plumbing;
	for (i = 0; i < stack->count; i++) {
		unsigned again = 0;

		/* A stack of nothing but plumbing is shown as it is. */
		if (stack->frames[i].plumbing && own && !out->full)
			continue;
		if (shown == FOLD_FRAMES && !out->full)
			break;
		print_frame(out, &stack->frames[i], indent);
		shown++;
		while (i + 1 < stack->count &&
		       same_frame(&stack->frames[i], &stack->frames[i + 1])) {
			again++;
			i++;
		}
		if (again)
			gm_print(out, GM_DIM, "%*s(the same %u more time%s)\n", (int)indent, "",
				 again, again == 1 ? "" : "s");
	}
	for (own = 0; i < stack->count; i++)
		own += !stack->frames[i].plumbing;
	if (own)
		gm_print(out, GM_DIM, "%*s... %u more frame%s (--full)\n", (int)indent, "", own,
			 own == 1 ? "" : "s");
	if (stack->flags & (GM_STACK_TRUNCATED | GM_STACK_PYTHON_TRUNCATED))
		gm_print(out, GM_DIM, "%*s(cut at GPUMEMTRACE_DEPTH)\n", (int)indent, "");
}
