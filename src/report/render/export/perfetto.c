/*
 * A trace for ui.perfetto.dev and chrome://tracing (the JSON form of trace events): counters of
 * each level of each device, slices of the phases of training, between marks and of named ranges,
 * instants at marks and out-of-memory events. Over the whole run the counters have the timeline's
 * resolution; where the history reaches, they are exact. Several processes share one axis of time,
 * by the wall clocks of their machines.
 */
#include "report/doc/enum_names.h"
#include "report/doc/options.h"
#include "report/history/events.h"
#include "report/render/export/internal.h"
#include "report/support/numbering.h"
#include <jansson.h>
#include <math.h>
#include <string.h>

#define MOST_RANGES 64 /* that have a track */

enum track { TRACK_MARKS = 1, TRACK_PHASES, TRACK_OOMS, TRACK_RANGES };

struct trace {
	struct gm_doc *doc;
	FILE *file;
	unsigned events;
	uint32_t pid;	    /* that the document's process has in the trace */
	uint64_t offset_ns; /* from the trace's time 0 to the document's */
	bool unplaced;	    /* in time: the file does not say when the process began */
};

static double micros(uint64_t ns)
{
	return (double)ns / 1000;
}

/* From one slice to the next, less a nanosecond: readers add in floating point, and none may
 * overlap. */
static double span(uint64_t since_ns, uint64_t end_ns)
{
	return end_ns > since_ns ? micros(end_ns - since_ns - 1) : 0;
}

/* A time of the document in microseconds of the trace. */
static double trace_time(const struct trace *trace, uint64_t ns)
{
	return micros(trace->offset_ns + ns);
}

/* Adds an event: takes `args`, NULL for none. `ts` and `duration` in microseconds, NAN for none. */
static void add(struct trace *trace, const char *phase, const char *name, int track, double ts,
		double duration, json_t *args)
{
	json_t *event = json_pack("{s:s, s:s, s:i}", "ph", phase, "name", name ? name : "", "pid",
				  (int)trace->pid);

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

/*
 * Labels a process with its host, which tells it from others of a job, and puts it in its place.
 */
static void label_process(struct trace *trace, unsigned order)
{
	const char *host = trace->doc->host ? trace->doc->host : "";
	const char *unplaced = trace->unplaced ? "when it began is not known: drawn from 0" : "";
	char text[256];

	snprintf(text, sizeof(text), "%s%s%s", host, *host && *unplaced ? ", " : "", unplaced);
	if (*text)
		add(trace, "M", "process_labels", 0, NAN, NAN, json_pack("{s:s}", "labels", text));
	add(trace, "M", "process_sort_index", 0, NAN, NAN,
	    json_pack("{s:i}", "sort_index", (int)order));
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
		add(trace, "C", name, 0, trace_time(trace, i * line->width_ns), NAN,
		    json_pack("{s:I, s:I}", "max", (json_int_t)line->max_bytes[i], "min",
			      (json_int_t)line->min_bytes[i]));
}

/* Counters and phases while the history goes by. */
struct passing {
	struct trace *trace;
	int64_t *bytes; /* of each level of the document, at the event in hand */
	const char *phase;
	uint64_t since_ns, last_ns, phase_bytes;
};

static int level_of(const struct gm_doc *doc, const struct gm_event_record *event)
{
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].device == event->device && doc->levels[i].level == event->level)
			return (int)i;
	return -1;
}

/* Counts back from the levels' present bytes to those before the first event of the ring. */
static void count_back(struct passing *passing)
{
	struct gm_doc *doc = passing->trace->doc;
	struct gm_history history = gm_load_history(doc);

	for (unsigned i = 0; i < doc->levels_count; i++)
		passing->bytes[i] = (int64_t)doc->levels[i].current_bytes;
	for (unsigned i = 0; i < history.count; i++) {
		int level = level_of(doc, &history.events[i]);

		if (level >= 0)
			passing->bytes[level] -= gm_event_change(&history.events[i]);
	}
}

static void count(struct passing *passing, const struct gm_event_record *event)
{
	static const char *const names[GM_LEVELS] = {"tracked", "torch_allocated", "custom"};
	int64_t change = gm_event_change(event);
	int level = change ? level_of(passing->trace->doc, event) : -1;
	char what[64], name[96];

	if (level < 0)
		return;
	passing->bytes[level] += change;
	snprintf(what, sizeof(what), "%s, each call",
		 event->device < 0 ? "pinned" : names[event->level]);
	add(passing->trace, "C", counter_name(name, sizeof(name), event->device, what), 0,
	    trace_time(passing->trace, event->time_ns), NAN,
	    json_pack("{s:I}", "bytes",
		      (json_int_t)(passing->bytes[level] > 0 ? passing->bytes[level] : 0)));
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

		add(trace, "i", mark->name, TRACK_MARKS, trace_time(trace, mark->record.time_ns),
		    NAN, NULL);
		add(trace, "X", mark->name, TRACK_MARKS, trace_time(trace, mark->record.time_ns),
		    span(mark->record.time_ns, end), args);
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

static void end_phase(struct passing *passing, uint64_t end_ns)
{
	if (passing->phase)
		add(passing->trace, "X", passing->phase, TRACK_PHASES,
		    trace_time(passing->trace, passing->since_ns), span(passing->since_ns, end_ns),
		    json_pack("{s:I}", "allocated_bytes", (json_int_t)passing->phase_bytes));
	passing->phase = NULL;
}

/* Allocations of one phase after the other are one slice, up to the next phase's first. */
static void follow_phase(struct passing *passing, const struct gm_event_record *event)
{
	const char *phase = phase_of(passing->trace->doc, event);

	if (!phase)
		return;
	if (passing->phase && strcmp(phase, passing->phase) != 0)
		end_phase(passing, event->time_ns);
	if (!passing->phase) {
		passing->phase = phase;
		passing->since_ns = event->time_ns;
		passing->phase_bytes = 0;
	}
	passing->last_ns = event->time_ns;
	passing->phase_bytes += event->bytes;
}

static void pass(const struct gm_event_record *event, void *data)
{
	count(data, event);
	follow_phase(data, event);
}

static void history(struct trace *trace)
{
	struct gm_doc *doc = trace->doc;
	struct passing passing = {
		.trace = trace,
		.bytes = gm_zone_alloc(&doc->zone, doc->levels_count + 1, sizeof(int64_t)),
	};

	if (!doc->journal)
		count_back(&passing);
	gm_history_each(doc, pass, &passing);
	end_phase(&passing, passing.last_ns);
}

static void ooms(struct trace *trace)
{
	const struct gm_doc *doc = trace->doc;

	for (unsigned i = 0; i < doc->ooms_count; i++) {
		const struct gm_oom *oom = &doc->ooms[i];

		add(trace, "i", "out of memory", TRACK_OOMS, trace_time(trace, oom->record.time_ns),
		    NAN,
		    json_pack("{s:i, s:I, s:s}", "device", (int)oom->record.device,
			      "requested_bytes", (json_int_t)oom->record.requested_bytes, "verdict",
			      oom->verdict ? oom->verdict : "exhausted"));
	}
}

static void range_slice(struct trace *trace, const struct gm_range_instance *instance, int track,
			const char *why)
{
	add(trace, "X", why, track, trace_time(trace, instance->start_ns),
	    span(instance->start_ns, instance->end_ns),
	    json_pack("{s:I, s:I, s:I, s:i}", "peak_bytes", (json_int_t)instance->peak_bytes,
		      "start_bytes", (json_int_t)instance->start_bytes, "retained_bytes",
		      (json_int_t)instance->retained_bytes, "thread", (int)instance->thread));
}

static bool overlap(const struct gm_range_instance *a, const struct gm_range_instance *b)
{
	return a->start_ns < b->end_ns && b->start_ns < a->end_ns;
}

/*
 * A track for each named range, with the two instances of it whose times the file has: that of the
 * highest peak, and that which retained most. Instances of different threads may overlap; then the
 * former alone is drawn, since slices of one track may not.
 */
static void ranges(struct trace *trace)
{
	const struct gm_doc *doc = trace->doc;
	int track = TRACK_RANGES;

	for (unsigned i = 0; i < doc->ranges_count && track < TRACK_RANGES + MOST_RANGES; i++) {
		const struct gm_range_record *record = &doc->ranges[i].record;
		char name[256], device[16];

		if (doc->ranges[i].hidden || !record->measured)
			continue;
		snprintf(device, sizeof(device), "device %d", record->device);
		snprintf(name, sizeof(name), "range %s, %s", doc->ranges[i].path,
			 record->device < 0 ? "host" : device);
		add(trace, "M", "thread_name", track, NAN, NAN, json_pack("{s:s}", "name", name));
		range_slice(trace, &record->highest, track,
			    record->measured > 1 ? "highest peak" : "only one");
		if (!overlap(&record->highest, &record->most_retained))
			range_slice(trace, &record->most_retained, track, "most retained");
		track++;
	}
}

static void write_process(struct trace *trace)
{
	const struct gm_doc *doc = trace->doc;

	name_tracks(trace);
	for (unsigned i = 0; i < doc->timeline_count; i++)
		timeline(trace, &doc->timeline[i]);
	history(trace);
	marks(trace);
	ranges(trace);
	ooms(trace);
}

static void begin(FILE *file)
{
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", file);
}

static int end(FILE *file)
{
	fputs("\n]}\n", file);
	return gm_export_end(file);
}

int gm_export_perfetto(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	struct trace trace = {.doc = doc, .file = file, .pid = doc->header->pid};

	(void)options;
	begin(file);
	write_process(&trace);
	return end(file);
}

/* Readers tell processes apart by the pid alone, which two hosts or containers may both have given:
 * then the next one that is free. */
static uint32_t own_pid(struct gm_numbering *pids, uint32_t pid)
{
	bool added = false;

	for (;; pid++) {
		gm_number_of(pids, &pid, sizeof(pid), &added);
		if (added)
			return pid;
	}
}

int gm_export_perfetto_job(struct gm_job *job, const struct gm_options *options, FILE *file)
{
	uint64_t start_ns = gm_export_job_start(job);
	struct trace trace = {.file = file};
	struct gm_numbering pids = {0};

	(void)options;
	begin(file);
	for (unsigned i = 0; i < job->count; i++) {
		const struct gm_header *header = job->docs[i]->header;

		if (job->docs[i]->superseded)
			continue;
		trace.doc = job->docs[i];
		trace.pid = own_pid(&pids, header->pid);
		trace.unplaced = !header->started_realtime_ns;
		trace.offset_ns = trace.unplaced ? 0 : header->started_realtime_ns - start_ns;
		label_process(&trace, i);
		write_process(&trace);
	}
	gm_numbering_free(&pids);
	return end(file);
}
