/*
 * `timeline`: each series as a bar chart of its maxima over time, drawn with plain characters or
 * block elements, and the marks below it.
 */
#include "report/render/text/text_timeline.h"
#include "report/render/text/text.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include <langinfo.h>
#include <string.h>

#define AXIS 14 /* columns of the scale on the left */
#define ROWS 8

static const char *const series_titles[GM_SERIES_COUNT] = {
	"tracked", "PyTorch allocated",	  "PyTorch reserved", "pools reserved",
	"pinned",  "used, by the driver", "custom pools"};

/* Highest value of each of at most `most` columns, which are no more than there are points. */
static unsigned gather(const struct gm_timeline_record *line, unsigned most, uint64_t *high)
{
	unsigned columns = line->points < most ? line->points : most;

	for (unsigned c = 0; c < columns; c++) {
		unsigned from = c * line->points / columns, to = (c + 1) * line->points / columns;

		high[c] = 0;
		for (unsigned i = from; i < to; i++)
			if (line->max_bytes[i] > high[c])
				high[c] = line->max_bytes[i];
	}
	return columns;
}

/*
 * Returns one cell of a column: the part of the row from `floor` to `floor + 1` (in rows) that the
 * column fills.
 */
static const char *cell(double height, int floor, bool blocks)
{
	static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	double part = height - floor;

	if (part <= 0)
		return " ";
	if (!blocks)
		return part >= 0.5 ? "#" : floor == 0 || part >= 0.25 ? "." : " ";
	return eighths[part >= 1 ? 8 : (int)(part * 8 + 0.999)];
}

static void draw(struct gm_out *out, const struct gm_timeline_record *line, bool blocks)
{
	char size[GM_FORMAT_BYTES], time[GM_FORMAT_BYTES], device[24];
	uint64_t high[GM_TIMELINE_POINTS], most = 0;
	unsigned columns = gather(line, out->width - AXIS, high);

	for (unsigned c = 0; c < columns; c++)
		most = high[c] > most ? high[c] : most;
	if (!most)
		return;
	gm_heading(out, "%s, %s: highest %s", gm_device_name(device, line->device),
		   series_titles[line->series], gm_format_size(size, most));
	for (int row = ROWS - 1; row >= 0; row--) {
		if (row == ROWS - 1 || row == ROWS / 2 - 1)
			gm_printf(out->file, "%12s |",
				gm_format_size(size, row == ROWS - 1 ? most : most / 2));
		else
			gm_printf(out->file, "%12s |", "");
		for (unsigned c = 0; c < columns; c++)
			fputs(cell((double)high[c] / (double)most * ROWS, row, blocks), out->file);
		fputc('\n', out->file);
	}
	gm_printf(out->file, "%12s +", "0");
	for (unsigned c = 0; c < columns; c++)
		fputc('-', out->file);
	gm_printf(out->file, "\n%14s0%*s\n", "", columns > 1 ? (int)columns - 1 : 8,
		gm_format_time(time, (double)line->points * (double)line->width_ns / 1e9));
}

void gm_text_timeline(struct gm_out *out, struct gm_doc *doc)
{
	bool blocks = out->color && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	char time[GM_FORMAT_BYTES], size[GM_FORMAT_BYTES];

	gm_print(out, GM_BOLD, "%u series over %s\n", doc->timeline_count,
		 gm_format_time(time, doc->duration_s));
	for (unsigned i = 0; i < doc->timeline_count; i++)
		draw(out, &doc->timeline[i], blocks);
	if (doc->marks_count)
		gm_heading(out, "Marks");
	for (unsigned i = 0; i < doc->marks_count && i < out->top; i++)
		gm_printf(out->file, "  %12s  %12s  %s\n",
			gm_format_time(time, (double)doc->marks[i].record.time_ns / 1e9),
			gm_format_size(size, doc->marks[i].record.current_bytes),
			doc->marks[i].name ? doc->marks[i].name : "");
	if (doc->marks_count > out->top)
		gm_printf(out->file, "  %u more (--top)\n", doc->marks_count - out->top);
}
