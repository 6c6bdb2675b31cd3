/*
 * From a file to a document: opens it, loads the parts, classifies, judges, and applies --device,
 * --kind and --level. The names of kinds, levels and verdicts stand here too.
 */
#include "report/stacks/classify.h"
#include "report/history/fine_timeline.h"
#include "report/journal/journal_file.h"
#include "report/history/moment.h"
#include "report/judge/judge.h"
#include "report/load/load.h"
#include "report/history/since.h"
#include "report/judge/suppress.h"
#include "report/symbols/symbolize.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static const char *const kind_names[GM_KINDS] = {
#define GM_KIND_ROW(kind, name, ...) [GM_KIND_##kind] = name,
	GM_KIND_TABLE(GM_KIND_ROW)
#undef GM_KIND_ROW
};
static const char *const level_names[GM_LEVELS] = {"driver", "torch", "custom"};
static const char *const verdict_names[] = {"released", "cached", "held", "grow"};
static const char *const severity_names[] = {"note", "warning", "error"};

static const struct {
	const char *name, *level;
} series_names[GM_SERIES_COUNT] = {
	{"tracked", "driver"},	     {"torch_allocated", "torch"}, {"torch_reserved", "torch"},
	{"pool_reserved", "driver"}, {"pinned", "driver"},	   {"driver_used", "driver"},
	{"custom", "custom"},
};

const char *gm_series_name(unsigned series)
{
	return series < GM_SERIES_COUNT ? series_names[series].name : "?";
}

const char *gm_series_level(unsigned series)
{
	return series < GM_SERIES_COUNT ? series_names[series].level : "?";
}

const char *gm_kind_name(unsigned kind)
{
	return kind < GM_KINDS ? kind_names[kind] : "?";
}

const char *gm_level_name(unsigned level)
{
	return level < GM_LEVELS ? level_names[level] : "?";
}

const char *gm_verdict_name(enum gm_verdict verdict)
{
	return verdict_names[verdict];
}

const char *gm_severity_name(enum gm_severity severity)
{
	return severity_names[severity];
}

static int number_of(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

int gm_kind_number(const char *name)
{
	return number_of(kind_names, GM_KINDS, name);
}

int gm_level_number(const char *name)
{
	return number_of(level_names, GM_LEVELS, name);
}

double gm_seconds(uint64_t ns)
{
	return ns == GM_NO_BYTES ? NAN : (double)ns / 1e9;
}

void gm_doc_warn(struct gm_doc *doc, const char *format, ...)
{
	const char **slot;
	va_list args;
	char text[1024];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	slot = gm_zone_push(&doc->zone, &doc->warnings, &doc->warnings_count, sizeof(*slot));
	*slot = gm_zone_strdup(&doc->zone, text);
}

const struct gm_level_record *gm_doc_level(const struct gm_doc *doc, int device, unsigned level)
{
	for (unsigned i = 0; i < doc->levels_count; i++)
		if (doc->levels[i].device == device && doc->levels[i].level == level)
			return &doc->levels[i];
	return NULL;
}

const struct gm_device *gm_doc_device(const struct gm_doc *doc, int device)
{
	for (unsigned i = 0; i < doc->devices_count; i++)
		if (doc->devices[i].index == device)
			return &doc->devices[i];
	return NULL;
}

const struct gm_imported *gm_doc_imported(const struct gm_doc *doc, int device)
{
	for (unsigned i = 0; i < doc->imported_count; i++)
		if (doc->imported[i].device == device)
			return &doc->imported[i];
	return NULL;
}

uint64_t gm_device_limit(const struct gm_device *device)
{
	if (!device)
		return GM_NO_BYTES;
	if (device->record.capacity_bytes != GM_NO_BYTES && device->record.capacity_bytes)
		return device->record.capacity_bytes;
	return device->record.total_bytes ? device->record.total_bytes : GM_NO_BYTES;
}

const char *gm_doc_function(const struct gm_doc *doc, uint32_t function)
{
	struct gm_function_record record;

	if (!gm_reader_get(doc->reader, GM_TABLE_FUNCTIONS, function, &record, sizeof(record)))
		return NULL;
	return gm_reader_string(doc->reader, record.name_string);
}

const char *gm_doc_variable(struct gm_doc *doc, const char *text, const char *name)
{
	size_t length = strlen(name);

	while (text && *text) {
		size_t line = strcspn(text, "\n");

		if (line > length && text[length] == '=' && strncmp(text, name, length) == 0)
			return gm_zone_strndup(&doc->zone, text + length + 1, line - length - 1);
		text += line;
		text += *text == '\n';
	}
	return NULL;
}

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

/* A copy, ours or PyTorch's snapshot, was taken by a process that ran on: it says how it was then. */
static bool is_copy(const struct gm_doc *doc)
{
	return doc->header->features & (GM_FEATURE_IMPORTED | GM_FEATURE_COPY);
}

/* To the end; of a killed process to its last event, of a running one to now. */
static double duration(const struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;
	struct timespec now;
	uint64_t now_ns;

	if (doc->clean_exit && header->ended_ns)
		return gm_seconds(header->ended_ns);
	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (strcmp(doc->end, "running") == 0 && !is_copy(doc) &&
	    now_ns > header->started_realtime_ns)
		return gm_seconds(now_ns - header->started_realtime_ns);
	return gm_seconds(header->last_event_ns);
}

void gm_load_process(struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;
	const char *environment = gm_reader_string(doc->reader, header->environment_string);

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
	doc->clean_exit = header->end == GM_END_EXIT || header->end == GM_END_EXEC;
	doc->end = doc->clean_exit			   ? "exit"
		   : is_copy(doc) || still_runs(doc) ? "running"
							   : "killed";
	doc->duration_s = duration(doc);
	if (header->dropped_records) {
		doc->complete = false;
		gm_doc_warn(doc,
			    "%llu record%s dropped because the file was full or could not grow; raise "
			    "GPUMEMTRACE_MAX_FILE or free disk space",
			    (unsigned long long)header->dropped_records,
			    header->dropped_records == 1 ? " was" : "s were");
	}
	if (header->marks_dropped)
		gm_doc_warn(doc, "%u mark%s not kept; the windows and the baseline of leaks follow them "
			    "all the same", header->marks_dropped, header->marks_dropped == 1 ? " was" : "s were");
	if (header->format_version > GM_FORMAT_VERSION)
		gm_doc_warn(doc,
			    "the file's format (%u) is newer than this gpumem-report (%u); "
			    "what it does not know is left out",
			    header->format_version, GM_FORMAT_VERSION);
}

/* A site of which nothing had happened yet at the moment of --at. */
static bool unborn(const struct gm_doc *doc, const struct gm_site_record *site)
{
	return doc->at_ns != GM_NO_BYTES && !site->allocations && !site->failures;
}

/* --device, --kind and --level: what does not match leaves the lists. */
static void filter(struct gm_doc *doc, const struct gm_options *options)
{
	int device = options->device;
	unsigned n;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct gm_site_record *site = &doc->sites[i].record;

		doc->sites[i].hidden = unborn(doc, site) || (device >= 0 && site->device != device) ||
				       (options->kind >= 0 && site->kind != options->kind) ||
				       (options->level >= 0 && site->level != options->level);
	}
#define KEEP(array, condition)                                                                     \
	do {                                                                                       \
		n = 0;                                                                             \
		for (unsigned i = 0; i < doc->array##_count; i++)                                  \
			if (condition)                                                             \
				doc->array[n++] = doc->array[i];                                   \
		doc->array##_count = n;                                                            \
	} while (0)
	if (options->kind >= 0)
		KEEP(usage, doc->usage[i].kind == options->kind);
	if (options->level >= 0)
		KEEP(categories, (int)doc->categories[i].level == options->level);
	if (device < 0)
		return;
	KEEP(devices, doc->devices[i].index == device);
	KEEP(levels, doc->levels[i].device == device);
	KEEP(usage, doc->usage[i].device == device);
	KEEP(pools, doc->pools[i].device == device);
	KEEP(vmm, doc->vmm[i].device == device);
	KEEP(torches, doc->torches[i].device == device);
	KEEP(pluggables, doc->pluggables[i].device == device);
	KEEP(fragmentation, doc->fragmentation[i].device == device);
	KEEP(retries, doc->retries[i].device == device);
	KEEP(ooms, doc->ooms[i].record.device == device);
	KEEP(implicit, doc->implicit[i].device == device);
	KEEP(ledger, doc->ledger[i].record.device == device);
	KEEP(phases, doc->phases[i].device == device);
	KEEP(categories, doc->categories[i].device == device);
	KEEP(timeline, doc->timeline[i].device == device);
#undef KEEP
}

/* One line per reason, with the first names: a PyTorch process can have forty such libraries. */
static void warn_missing(struct gm_doc *doc)
{
	static const char *const reasons[GM_MISSING_REASONS] = {
		"not on this machine", "here of another build than the one that ran (build id)",
		"no object files here"};
	const char *paths[4];

	for (unsigned reason = 0; reason < GM_MISSING_REASONS; reason++) {
		unsigned count = gm_symbols_missing(doc->symbols, (enum gm_missing)reason, paths,
						    ARRAY_SIZE(paths));
		char *names = gm_zone_strdup(&doc->zone, "");

		for (unsigned i = 0; i < count && i < ARRAY_SIZE(paths); i++) {
			const char *slash = strrchr(paths[i], '/');

			names = gm_zone_printf(&doc->zone, "%s%s%s", names, i ? ", " : "",
					       slash ? slash + 1 : paths[i]);
		}
		if (count)
			gm_doc_warn(doc, "%u %s %s %s; functions there have no names: %s%s", count,
				    count == 1 ? "library" : "libraries", count == 1 ? "is" : "are",
				    reasons[reason], names,
				    count > ARRAY_SIZE(paths) ? ", ..." : "");
	}
}

static void begin_symbols(struct gm_doc *doc, const struct gm_options *options)
{
	if (!options->symbols)
		return;
	doc->shared_symbols = options->shared_symbols != NULL;
	doc->symbols = doc->shared_symbols ? options->shared_symbols
					   : gm_symbols_new(&doc->zone, options->symbol_cache);
	gm_symbols_begin(doc->symbols);
}

/* What the files hold, at the moment and of the stretch that the options ask for. */
static bool load(struct gm_doc *doc, const struct gm_options *options, char *error,
		 size_t error_bytes)
{
	gm_load_process(doc);
	gm_warn_history(doc);
	gm_load_launch(doc);
	gm_load_tables(doc);
	gm_load_sites(doc);
	gm_load_events(doc);
	gm_repair(doc);
	if (!gm_moment(doc, options, error, error_bytes))
		return false;
	if (options->fine_timeline)
		gm_fine_timeline(doc);
	gm_finish_sites(doc);
	if (!gm_since(doc, options, error, error_bytes))
		return false;
	gm_classify(doc);
	gm_load_fragmentation(doc);
	if (doc->at_ns == GM_NO_BYTES)
		gm_load_ledger(doc);
	return true;
}

static void judge(struct gm_doc *doc, const struct gm_options *options,
		  struct gm_suppressions *suppressions)
{
	gm_judge_sites(doc, options->warmup);
	if (suppressions)
		gm_suppress(doc, suppressions);
	if (!options->no_shipped_suppressions)
		gm_suppress(doc, gm_suppressions_shipped(&doc->zone));
	filter(doc, options);
	gm_judge(doc);
	gm_moment_finish(doc);
}

/* False with a sentence in `error`. */
static bool fill(struct gm_doc *doc, const char *path, const struct gm_options *options,
		 char *error, size_t error_bytes)
{
	struct gm_suppressions *suppressions = NULL;

	if (!gm_open_files(doc, path, error, error_bytes))
		return false;
	begin_symbols(doc, options);
	for (unsigned i = 0; i < options->suppressions_count; i++) {
		suppressions = gm_suppressions_read(&doc->zone, suppressions,
						    options->suppressions[i], error, error_bytes);
		if (!suppressions)
			return false;
	}
	if (!load(doc, options, error, error_bytes))
		return false;
	judge(doc, options, suppressions);
	if (doc->symbols)
		warn_missing(doc);
	return true;
}

struct gm_doc *gm_doc_open(const char *path, const struct gm_options *options, char *error,
			   size_t error_bytes)
{
	struct gm_doc *doc = gm_realloc(NULL, sizeof(*doc));

	memset(doc, 0, sizeof(*doc));
	doc->at_ns = GM_NO_BYTES;
	if (fill(doc, path, options, error, error_bytes))
		return doc;
	gm_doc_free(doc);
	return NULL;
}

static void release_frames(struct gm_doc *doc)
{
	for (unsigned i = 0; doc->release && i < doc->frames_count; i++)
		for (unsigned k = 0; k < doc->frames[i].count; k++)
			if (doc->frames[i].frames[k].memo->rendered)
				doc->release(doc->frames[i].frames[k].memo->rendered);
}

void gm_doc_free(struct gm_doc *doc)
{
	if (!doc)
		return;
	release_frames(doc);
	if (!doc->shared_symbols)
		gm_symbols_free(doc->symbols);
	gm_journal_close(doc->journal);
	gm_reader_close(doc->reader);
	gm_zone_free(&doc->zone);
	free(doc);
}
