/*
 * A trace for ui.perfetto.dev and chrome://tracing (the JSON form of trace events): counters of
 * each level of each device, slices of the phases of training and between marks, instants at marks
 * and out-of-memory events. Over the whole run the counters have the timeline's resolution; where
 * the ring of events reaches, they are exact.
 */
#include "report/history.h"
#include "report/render/export.h"
#include <jansson.h>
#include <math.h>
#include <string.h>

enum track { TRACK_MARKS = 1, TRACK_PHASES, TRACK_OOMS };

struct trace {
	struct gm_doc *doc;
	FILE *file;
	unsigned events;
};

static double micros(uint64_t ns)
{
	return (double)ns / 1000;
}

/* Adds an event: takes `args`, NULL for none. `ts` and `duration` in microseconds, NAN for none. */
static void add(struct trace *trace, const char *phase, const char *name, int track, double ts,
		double duration, json_t *args)
{
	json_t *event = json_pack("{s:s, s:s, s:i}", "ph", phase, "name", name ? name : "", "pid",
				  (int)trace->doc->header->pid);

	if (track)
		json_object_set_new(event, "tid", json_integer(track));
	if (!isnan(ts))
		json_object_set_new(event, "ts", json_real(ts));
	if (!isnan(duration))
		json_object_set_new(event, "dur", json_real(duration));
	if (*phase == 'i')
		json_object_set_new(event, "s", json_string("p"));
	if (args)
		json_object_set_new(event, "args", args);
	fputs(trace->events++ ? ",\n" : "\n", trace->file);
	json_dumpf(event, trace->file, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(event);
}

static void name_tracks(struct trace *trace)
{
	static const char *const names[] = {[TRACK_MARKS] = "between marks",
					    [TRACK_PHASES] = "phases",
					    [TRACK_OOMS] = "out of memory"};
	const struct gm_doc *doc = trace->doc;
	char text[128];

	if (doc->header->rank >= 0)
		snprintf(text, sizeof(text), "%s, rank %d", doc->program ? doc->program : "?",
			 doc->header->rank);
	else
		snprintf(text, sizeof(text), "%s", doc->program ? doc->program : "?");
	add(trace, "M", "process_name", 0, NAN, NAN, json_pack("{s:s}", "name", text));
	for (int i = TRACK_MARKS; i <= TRACK_OOMS; i++)
		add(trace, "M", "thread_name", i, NAN, NAN, json_pack("{s:s}", "name", names[i]));
}

static const char *counter_name(char *text, size_t bytes, int device, const char *what)
{
	if (device < 0)
		snprintf(text, bytes, "host: %s", what);
	else
		snprintf(text, bytes, "device %d: %s", device, what);
	return text;
}

static void timeline(struct trace *trace, const struct gm_timeline_record *line)
{
	char name[64];

	counter_name(name, sizeof(name), line->device, gm_series_name(line->series));
	for (unsigned i = 0; i < line->points; i++)
		add(trace, "C", name, 0, micros(i * line->width_ns), NAN,
		    json_pack("{s:I, s:I}", "max", (json_int_t)line->max_bytes[i], "min",
			      (json_int_t)line->min_bytes[i]));
}

/* A level in the ring: counted back from what the file says it is now. */
static void exact(struct trace *trace, const struct gm_history *history,
		  const struct gm_level_record *level)
{
	static const char *const names[GM_LEVELS] = {"tracked", "torch_allocated", "custom"};
	int64_t bytes = (int64_t)level->current_bytes;
	char what[64], name[96];

	for (unsigned i = 0; i < history->count; i++)
		if (history->events[i].device == level->device &&
		    history->events[i].level == level->level)
			bytes -= gm_event_change(&history->events[i]);
	snprintf(what, sizeof(what), "%s, each call",
		 level->device < 0 ? "pinned" : names[level->level]);
	counter_name(name, sizeof(name), level->device, what);
	for (unsigned i = 0; i < history->count; i++) {
		const struct gm_event_record *event = &history->events[i];
		int64_t change = gm_event_change(event);

		if (event->device != level->device || event->level != level->level || !change)
			continue;
		bytes += change;
		add(trace, "C", name, 0, micros(event->time_ns), NAN,
		    json_pack("{s:I}", "bytes", (json_int_t)(bytes > 0 ? bytes : 0)));
	}
}

/* A slice from each mark to the next, the last one to the end. */
static void marks(struct trace *trace)
{
	const struct gm_doc *doc = trace->doc;

	for (unsigned i = 0; i < doc->marks_count; i++) {
		const struct gm_mark *mark = &doc->marks[i];
		uint64_t end = i + 1 < doc->marks_count ? doc->marks[i + 1].record.time_ns
							: doc->header->last_event_ns;
		json_t *args = json_pack("{s:I, s:I}", "current_bytes",
					 (json_int_t)mark->record.current_bytes, "torch_bytes",
					 (json_int_t)mark->record.torch_bytes);

		add(trace, "i", mark->name, TRACK_MARKS, micros(mark->record.time_ns), NAN, NULL);
		add(trace, "X", mark->name, TRACK_MARKS, micros(mark->record.time_ns),
		    micros(end > mark->record.time_ns ? end - mark->record.time_ns : 0), args);
	}
}

/* The phase that an allocation belongs to, NULL where that cannot be told. */
static const char *phase_of(const struct gm_doc *doc, const struct gm_event_record *event)
{
	unsigned level = doc->torch ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER;

	if (event->op != GM_OP_ALLOC || event->level != level || event->site >= doc->sites_count)
		return NULL;
	return doc->sites[event->site].phase;
}

/* Allocations of one phase after the other are one slice, up to the next phase's first. */
static void phases(struct trace *trace, const struct gm_history *history)
{
	const char *current = NULL;
	uint64_t since = 0, last = 0, bytes = 0;

	for (unsigned i = 0; i <= history->count; i++) {
		const struct gm_event_record *event =
			i < history->count ? &history->events[i] : NULL;
		const char *phase = event ? phase_of(trace->doc, event) : NULL;

		if (event && !phase)
			continue;
		if (current && (!phase || strcmp(phase, current) != 0)) {
			uint64_t end = event ? event->time_ns : last;

			add(trace, "X", current, TRACK_PHASES, micros(since),
			    micros(end > since ? end - since : 0),
			    json_pack("{s:I}", "allocated_bytes", (json_int_t)bytes));
			current = NULL;
		}
		if (!event)
			break;
		if (!current) {
			current = phase;
			since = event->time_ns;
			bytes = 0;
		}
		last = event->time_ns;
		bytes += event->bytes;
	}
}

static void ooms(struct trace *trace)
{
	const struct gm_doc *doc = trace->doc;

	for (unsigned i = 0; i < doc->ooms_count; i++) {
		const struct gm_oom *oom = &doc->ooms[i];

		add(trace, "i", "out of memory", TRACK_OOMS, micros(oom->record.time_ns), NAN,
		    json_pack("{s:i, s:I, s:s}", "device", (int)oom->record.device,
			      "requested_bytes", (json_int_t)oom->record.requested_bytes, "verdict",
			      oom->verdict ? oom->verdict : "exhausted"));
	}
}

int gm_export_perfetto(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	struct trace trace = {.doc = doc, .file = file};
	struct gm_history history = gm_load_history(doc);

	(void)options;
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", file);
	name_tracks(&trace);
	for (unsigned i = 0; i < doc->timeline_count; i++)
		timeline(&trace, &doc->timeline[i]);
	for (unsigned i = 0; i < doc->levels_count; i++)
		exact(&trace, &history, &doc->levels[i]);
	marks(&trace);
	phases(&trace, &history);
	ooms(&trace);
	fputs("\n]}\n", file);
	return gm_export_end(file);
}
