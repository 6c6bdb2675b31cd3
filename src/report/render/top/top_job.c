/*
 * The screen of `top` for several processes (top.h): what they have together, then a row for
 * each process and device.
 */
#include "report/render/top/top_job.h"
#include "report/render/top/top.h"
#include "report/render/top/top_lines.h"
#include "report/support/format.h"
#include <math.h>
#include <string.h>

struct screen {
	const struct gm_top_process *processes;
	unsigned count;
	const struct gm_top *like;
	struct gm_top_out out;
};

/* Counts in what they have together: no earlier attempt, no copy. */
static bool counts(const struct gm_top_process *process)
{
	return !process->doc->superseded;
}

/* True if a level gets a row: the driver level of a device that is shown. */
static bool wanted(const struct screen *screen, const struct gm_level_record *level)
{
	return level->level == GM_LEVEL_DRIVER && level->device >= 0 &&
	       (screen->like->device < 0 || level->device == screen->like->device);
}

static const char *state(const struct gm_top_process *process)
{
	return process->gone		  ? "gone"
	       : process->doc->superseded ? process->doc->superseded
					  : process->doc->end;
}

/* "3 processes: 2 running, 1 exit" */
static void head(struct screen *screen)
{
	static const char *const states[] = {"running", "exit", "killed", "gone"};
	unsigned all = 0;
	char text[128] = "";

	for (unsigned i = 0; i < screen->count; i++)
		all += counts(&screen->processes[i]);
	for (size_t s = 0; s < sizeof(states) / sizeof(states[0]); s++) {
		unsigned count = 0;

		for (unsigned i = 0; i < screen->count; i++)
			count += counts(&screen->processes[i]) &&
				 strcmp(state(&screen->processes[i]), states[s]) == 0;
		if (count)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %u %s",
				 *text ? "," : "", count, states[s]);
	}
	gm_top_line(&screen->out, GM_BOLD, "%u processes:%s%s", all, text,
		    screen->like->paused ? "  paused" : "");
}

static void calls(struct screen *screen)
{
	double calls_per_s = 0, allocated_per_s = 0, freed_per_s = 0;
	char count[GM_FORMAT_BYTES], allocated[GM_FORMAT_BYTES], freed[GM_FORMAT_BYTES];
	bool rates = false;
	uint64_t events = 0;

	for (unsigned i = 0; i < screen->count; i++) {
		const struct gm_top *top = &screen->processes[i].top;

		if (!counts(&screen->processes[i]))
			continue;
		events += screen->processes[i].doc->header->events;
		if (isnan(top->calls_per_s) || screen->processes[i].gone)
			continue;
		rates = true;
		calls_per_s += top->calls_per_s;
		allocated_per_s += top->allocated_per_s;
		freed_per_s += top->freed_per_s;
	}
	gm_format_count(count, events);
	if (rates)
		gm_top_line(&screen->out, GM_PLAIN,
			    "%s calls, %.0f a second: %s/s allocated, %s/s freed", count,
			    calls_per_s, gm_format_size(allocated, (uint64_t)allocated_per_s),
			    gm_format_size(freed, (uint64_t)freed_per_s));
	else
		gm_top_line(&screen->out, GM_PLAIN, "%s calls", count);
}

/* True for the first row of the screen that is of this device. */
static bool is_first(const struct screen *screen, unsigned process, int device)
{
	for (unsigned i = 0; i < process; i++) {
		const struct gm_doc *doc = screen->processes[i].doc;

		for (unsigned k = 0; k < doc->levels_count && counts(&screen->processes[i]); k++)
			if (wanted(screen, &doc->levels[k]) &&
			    gm_same_device(doc, doc->levels[k].device,
					   screen->processes[process].doc, device))
				return false;
	}
	return true;
}

/* Prints the bytes that all processes have of a device, which `process` is the first to use. */
static void device(struct screen *screen, unsigned process, int number)
{
	const struct gm_doc *first = screen->processes[process].doc;
	uint64_t limit = gm_device_limit(gm_doc_device(first, number)), current = 0, peaks = 0;
	char used[GM_FORMAT_BYTES], most[GM_FORMAT_BYTES], all[GM_FORMAT_BYTES], name[24], bar[24];
	unsigned users = 0;

	for (unsigned i = process; i < screen->count; i++) {
		const struct gm_doc *doc = screen->processes[i].doc;

		for (unsigned k = 0; k < doc->levels_count && counts(&screen->processes[i]); k++) {
			const struct gm_level_record *level = &doc->levels[k];

			if (!wanted(screen, level) ||
			    !gm_same_device(first, number, doc, level->device))
				continue;
			users++;
			current += level->current_bytes;
			peaks += level->peak_bytes;
		}
	}
	gm_top_bar(bar, 20, current, peaks, limit == GM_NO_BYTES ? peaks : limit);
	gm_top_line(&screen->out, GM_PLAIN, "%-9s %10s [%s] sum of peaks %s%s%s, %u process%s%s%s",
		    gm_device_name(name, number), gm_format_size(used, current), bar,
		    gm_format_size(most, peaks), limit == GM_NO_BYTES ? "" : " of ",
		    limit == GM_NO_BYTES ? "" : gm_format_size(all, limit), users,
		    users == 1 ? "" : "es", first->host ? ", " : "",
		    first->host ? first->host : "");
}

static void devices(struct screen *screen)
{
	for (unsigned i = 0; i < screen->count; i++) {
		const struct gm_doc *doc = screen->processes[i].doc;

		for (unsigned k = 0; k < doc->levels_count && counts(&screen->processes[i]); k++)
			if (wanted(screen, &doc->levels[k]) &&
			    is_first(screen, i, doc->levels[k].device))
				device(screen, i, doc->levels[k].device);
	}
}

static uint64_t retries_of(const struct gm_doc *doc)
{
	uint64_t attempts = 0;

	for (unsigned i = 0; i < doc->retries_count; i++)
		attempts += doc->retries[i].attempts;
	return attempts;
}

#define ROW "%5s %8s  %-15s %6s %11s %11s %9s %7s %4s  %s"

static void row(struct screen *screen, const struct gm_top_process *process,
		const struct gm_level_record *level)
{
	const struct gm_doc *doc = process->doc;
	uint64_t ooms = doc->ooms_count + doc->ooms_lost;
	char rank[16] = "-", pid[16], number[16] = "-", current[GM_FORMAT_BYTES] = "-",
	     peak[GM_FORMAT_BYTES] = "-", rate[32] = "-", retries[GM_FORMAT_BYTES],
	     failures[GM_FORMAT_BYTES];

	if (doc->header->rank >= 0)
		snprintf(rank, sizeof(rank), "%d", doc->header->rank);
	snprintf(pid, sizeof(pid), "%u", doc->header->pid);
	if (level) {
		snprintf(number, sizeof(number), "%d", level->device);
		gm_format_size(current, level->current_bytes);
		gm_format_size(peak, level->peak_bytes);
	}
	if (!isnan(process->top.calls_per_s) && !process->gone)
		snprintf(rate, sizeof(rate), "%.0f", process->top.calls_per_s);
	gm_top_line(&screen->out, ooms ? GM_RED : GM_PLAIN, ROW, rank, pid, state(process), number,
		    current, peak, rate, gm_format_count(retries, retries_of(doc)),
		    gm_format_count(failures, ooms), doc->program ? doc->program : "?");
}

static void rows(struct screen *screen)
{
	gm_top_line(&screen->out, GM_BOLD, ROW, "rank", "pid", "state", "device", "live", "peak",
		    "calls/s", "retries", "OOMs", "program");
	for (unsigned i = 0; i < screen->count; i++) {
		const struct gm_top_process *process = &screen->processes[i];
		unsigned shown = 0;

		for (unsigned k = 0; k < process->doc->levels_count; k++)
			if (wanted(screen, &process->doc->levels[k])) {
				row(screen, process, &process->doc->levels[k]);
				shown++;
			}
		if (!shown && screen->like->device < 0)
			row(screen, process, NULL);
	}
}

void gm_top_job_lines(const struct gm_top_process *processes, unsigned count,
		      const struct gm_top *like, unsigned width, unsigned height,
		      void (*emit)(void *data, enum gm_style style, const char *line), void *data)
{
	struct screen screen = {processes, count, like, {width, height, emit, data}};

	head(&screen);
	calls(&screen);
	devices(&screen);
	gm_top_line(&screen.out, GM_PLAIN, "%s", "");
	rows(&screen);
}
