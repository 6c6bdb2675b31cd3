/*
 * The process that a file is of: its command, how it ended and how long it ran.
 */
#include "report/load/internal.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Splits the arguments of `command_string`, see layout.h. */
static void load_command(struct gm_doc *doc, const char *text)
{
	char *word, *to;

	while (text && *text) {
		const char **slot;

		to = word = gm_zone_alloc(&doc->zone, strlen(text) + 1, 1);
		for (; *text && *text != '\n'; text++) {
			if (text[0] == '\\' && text[1])
				text++;
			*to++ = *text;
		}
		text += *text == '\n';
		slot = gm_zone_push(&doc->zone, &doc->command, &doc->command_count, sizeof(*slot));
		*slot = word;
	}
}

/* True if the process of the file still runs on this machine. */
static bool still_runs(const struct gm_doc *doc)
{
	char path[64], text[1024], here[256] = "";
	unsigned long long ticks;
	const char *after;
	FILE *stat;
	size_t n;

	gethostname(here, sizeof(here) - 1);
	if (!doc->header->pid || (doc->host && *doc->host && strcmp(here, doc->host) != 0))
		return false;
	snprintf(path, sizeof(path), "/proc/%u/stat", doc->header->pid);
	stat = fopen(path, "re");
	if (!stat)
		return false;
	n = fread(text, 1, sizeof(text) - 1, stat);
	fclose(stat);
	text[n] = '\0';
	/* The command in parentheses may hold anything; field 3 follows the last one. */
	after = strrchr(text, ')');
	if (!after || after[1] == '\0' || after[2] == 'Z' || after[2] == 'X')
		return false;
	after += 2;
	for (int field = 3; after && field < 22; field++) {
		after = strchr(after, ' ');
		after = after ? after + 1 : NULL;
	}
	return after && sscanf(after, "%llu", &ticks) == 1 && ticks == doc->header->pid_start_ticks;
}

static const char *iso_time(struct gm_doc *doc, uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / 1000000000u);
	struct tm tm;
	char text[40];

	if (realtime_ns == 0 || !gmtime_r(&seconds, &tm))
		return NULL;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	return gm_zone_printf(&doc->zone, "%s.%06uZ", text,
			      (unsigned)(realtime_ns % 1000000000u / 1000));
}

/*
 * A copy, ours or PyTorch's snapshot, was taken by a process that ran on: it says how it was then.
 */
static bool is_copy(const struct gm_doc *doc)
{
	return doc->header->features & (GM_FEATURE_IMPORTED | GM_FEATURE_COPY);
}

/* The last event, or what was opened for one that a kill cut short. */
static uint64_t last_event_ns(const struct gm_header *header)
{
	uint64_t window_ns = header->window_current < GM_WINDOWS
				     ? header->window_start_ns[header->window_current]
				     : 0;

	return window_ns > header->last_event_ns ? window_ns : header->last_event_ns;
}

/* To the end, which threads may outlive; of a killed process to its last event, of a running one to
 * now. */
static double duration(const struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;
	struct timespec now;
	uint64_t now_ns;

	if (header->end != GM_END_NONE && header->ended_ns > header->last_event_ns)
		return gm_seconds(header->ended_ns);
	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (strcmp(doc->end, "running") == 0 && !is_copy(doc) &&
	    now_ns > header->started_realtime_ns)
		return gm_seconds(now_ns - header->started_realtime_ns);
	return gm_seconds(last_event_ns(header));
}

void gm_load_process(struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;
	const char *environment = gm_reader_string(doc->reader, header->environment_string);
	bool exited;

	doc->path = gm_reader_path(doc->reader);
	doc->complete = gm_reader_complete(doc->reader);
	for (unsigned i = 0; i < GM_TABLES; i++)
		doc->lacking |= (uint64_t)gm_reader_lacks(doc->reader, i) << i;
	for (unsigned i = 0; i < gm_reader_warnings(doc->reader); i++)
		gm_doc_warn(doc, "%s", gm_reader_warning(doc->reader, i));
	load_command(doc, gm_reader_string(doc->reader, header->command_string));
	doc->cwd = gm_reader_string(doc->reader, header->cwd_string);
	doc->host = gm_reader_string(doc->reader, header->host_string);
	doc->program = gm_reader_string(doc->reader, header->program_string);
	doc->version = gm_reader_string(doc->reader, header->tracer_version_string);
	doc->backend = gm_reader_string(doc->reader, header->backend_string);
	doc->unwinder = gm_reader_string(doc->reader, header->unwinder_string);
	doc->python = gm_reader_string(doc->reader, header->python_string);
	if (doc->python && !*doc->python)
		doc->python = NULL;
	doc->uncached_torch =
		gm_doc_variable(doc, environment, "PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL;
	doc->allocator_settings = gm_doc_variable(doc, environment, "PYTORCH_CUDA_ALLOC_CONF");
	if (!doc->allocator_settings)
		doc->allocator_settings = gm_doc_variable(doc, environment, "PYTORCH_ALLOC_CONF");
	doc->started_at = iso_time(doc, header->started_realtime_ns);
	exited = header->end == GM_END_EXIT || header->end == GM_END_EXEC;
	/* Frees after the period are not known, so nothing is known to be left at the end. */
	doc->clean_exit = exited && !header->period_ended_ns;
	doc->end = exited			     ? "exit"
		   : header->end == GM_END_DETACHED  ? "detached"
		   : is_copy(doc) || still_runs(doc) ? "running"
						     : "killed";
	doc->duration_s = duration(doc);
	if (header->dropped_records) {
		doc->complete = false;
		gm_doc_warn(
			doc,
			"%llu record%s dropped because the file was full or could not grow; raise "
			"GPUMEMTRACE_MAX_FILE or free disk space",
			(unsigned long long)header->dropped_records,
			header->dropped_records == 1 ? " was" : "s were");
	}
	if (header->marks_dropped)
		gm_doc_warn(doc,
			    "%u mark%s not kept; the windows and the baseline of leaks follow them "
			    "all the same",
			    header->marks_dropped, header->marks_dropped == 1 ? " was" : "s were");
	if (header->ranges_dropped)
		gm_doc_warn(doc,
			    "%llu range%s not recorded: more than 64 threads had ranges open, or "
			    "there were too many names",
			    (unsigned long long)header->ranges_dropped,
			    header->ranges_dropped == 1 ? " was" : "s were");
	if (header->sample_bytes)
		gm_doc_warn(doc,
			    "the recording is sampled (GPUMEMTRACE_SAMPLE, on average once in %s): "
			    "totals and peaks are exact, figures of sites are estimates, and what "
			    "needs every block is left out: PyTorch's holes, the live blocks of "
			    "ranges, the history",
			    gm_size(doc, header->sample_bytes));
	if (header->walks_differing)
		gm_doc_warn(doc,
			    "%llu of %llu stacks that two unwinders walked differ; the traced "
			    "program's stderr "
			    "has both",
			    (unsigned long long)header->walks_differing,
			    (unsigned long long)header->walks_compared);
	if (header->format_version > GM_FORMAT_VERSION)
		gm_doc_warn(doc,
			    "the file's format (%u) is newer than this gpumem-report (%u); "
			    "what it does not know is left out",
			    header->format_version, GM_FORMAT_VERSION);
}
