/*
 * The summary: three lines that answer what people ask first, then process, usage, ledger, phases,
 * categories and findings.
 */
#include "report/render/text/text_summary.h"
#include "report/doc/enum_names.h"
#include "report/render/text/text.h"
#include "report/render/text/text_holes.h"
#include "report/render/text/text_ranges.h"
#include "report/stacks/labels.h"
#include "report/stacks/stacks.h"
#include "report/support/format.h"
#include "report/support/print.h"
#include "account/kinds.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAKEUP_PARTS 3
#define LEAST_NAME   16 /* columns of a part of the peak */

/* The labels of the first three lines. */
#define SEEN "Seen: "
#define PEAK "Peak: "
#define NEXT "Next: "

static uint64_t magnitude(int64_t bytes)
{
	return bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
}

/* By how much the rows miss the driver's figure, in parts of it. */
static double missed(const struct gm_ledger_record *record)
{
	return (double)magnitude(record->unexplained_bytes) / (double)record->process_used_bytes;
}

/* Says of which moment the figures are, and how many calls were not sampled since. */
static const char *moment(struct gm_doc *doc, const struct gm_ledger_record *record)
{
	char time[GM_FORMAT_BYTES], end[GM_FORMAT_BYTES];
	const char *text = gm_doc_printf(doc, " at %s of %s",
					 gm_format_time(time, gm_seconds(record->time_ns)),
					 gm_format_time(end, doc->duration_s));

	return record->later_calls
		       ? gm_doc_printf(doc, "%s, before %llu call%s that may take more", text,
				       (unsigned long long)record->later_calls,
				       gm_s(record->later_calls))
		       : text;
}

/*
 * Prints the first of the texts, which say the same ever more briefly, that fits on a line behind
 * the label; if none does, the last one without its middle.
 */
static void answer(struct gm_out *out, struct gm_doc *doc, const char *label,
		   const char *const *texts, unsigned count)
{
	unsigned room = out->width - (unsigned)strlen(label), i = 0;

	while (i + 1 < count && gm_text_columns(texts[i]) > room)
		i++;
	gm_print(out, GM_BOLD, "%s", label);
	gm_printf(out->file, "%s\n", gm_text_shorten(&doc->zone, texts[i], room));
}

/* The device that the driver's figure differs most from what was seen; NULL without a figure. */
static const struct gm_ledger_record *worst_ledger(const struct gm_doc *doc)
{
	const struct gm_ledger_record *worst = NULL;

	for (unsigned i = 0; i < doc->ledger_count; i++) {
		const struct gm_ledger_record *record = &doc->ledger[i].record;

		if (!record->process_used_bytes || record->process_used_bytes == GM_NO_BYTES ||
		    (record->unexplained_bytes > 0 &&
		     (uint64_t)record->unexplained_bytes > record->process_used_bytes))
			continue;
		if (!worst || missed(record) > missed(worst))
			worst = record;
	}
	return worst;
}

/* Describes the gap in the figures, in full and briefly; empty if there is none. */
static void seen_gap(struct gm_doc *doc, const struct gm_ledger_record *worst, const char *texts[2])
{
	const char *gap = gm_books_gap(doc, 1ull << GM_TABLE_LEVELS | 1ull << GM_TABLE_SITES);
	const char *missing = gm_size(doc, magnitude(worst->unexplained_bytes));

	texts[0] = texts[1] = "";
	if (gap) {
		texts[0] = gm_doc_printf(doc, "; the file is incomplete: %s", gap);
		texts[1] = gm_doc_printf(doc, "; incomplete: %s", gap);
	} else if (worst->unexplained_bytes < 0) {
		texts[0] = gm_doc_printf(doc, "; the ledger's rows add up to %s more than that",
					 missing);
		texts[1] = gm_doc_printf(doc, "; the rows exceed it by %s", missing);
	} else if (missed(worst) > 0.05) {
		texts[0] =
			gm_doc_printf(doc, "; %s are missing, see the finding coverage", missing);
		texts[1] = gm_doc_printf(doc, "; %s missing (coverage)", missing);
	}
}

/* Was everything seen? The worst device decides; without the driver's figure that is said. */
static void seen_line(struct gm_out *out, struct gm_doc *doc)
{
	const struct gm_ledger_record *worst = worst_ledger(doc);
	const char *texts[4], *gap[2], *percent, *used, *when;
	char text[GM_FORMAT_BYTES];
	uint64_t explained;

	if (doc->imported) {
		texts[0] =
			"PyTorch's allocator, by its own snapshot; what libraries and the driver "
			"take is not in it";
		texts[1] = "PyTorch's allocator, by its own snapshot, and nothing beside it";
		answer(out, doc, SEEN, texts, 2);
		return;
	}
	if (!worst) {
		texts[0] =
			gm_doc_lacks(doc, GM_TABLE_LEDGER)
				? "not known, the file is damaged (see below)"
				: "every call that reached the shim; the file has no figure of the "
				  "driver's to compare with";
		texts[1] = "every call that reached the shim; the driver's figure is not known";
		answer(out, doc, SEEN, texts, 2);
		return;
	}
	explained = worst->unexplained_bytes > 0
			    ? worst->process_used_bytes - (uint64_t)worst->unexplained_bytes
			    : worst->process_used_bytes;
	percent = gm_zone_strdup(&doc->zone,
				 gm_format_percent(text, explained, worst->process_used_bytes));
	used = gm_size(doc, worst->process_used_bytes);
	seen_gap(doc, worst, gap);
	when = moment(doc, worst);
	texts[0] = gm_doc_printf(
		doc, "%s of the %s that the driver reports on device %d (%s)%s%s", percent, used,
		worst->device,
		worst->source == GM_LEDGER_NVML_PROCESS ? "NVML, this process"
							: "device, since before the first context",
		worst->before_bytes
			? gm_doc_printf(doc, "%s, %s of it from before the recording", when,
					gm_size(doc, worst->before_bytes))
			: when,
		gap[0]);
	texts[1] = gm_doc_printf(doc, "%s of the %s that the driver reports on device %d%s%s",
				 percent, used, worst->device, when, gap[0]);
	texts[2] = gm_doc_printf(doc, "%s of the driver's %s on device %d%s%s", percent, used,
				 worst->device, when, gap[1]);
	texts[3] = gm_doc_printf(doc, "%s of %s at %s (device %d)%s", percent, used,
				 gm_format_time(text, gm_seconds(worst->time_ns)), worst->device,
				 gap[1]);
	answer(out, doc, SEEN, texts, 4);
}

/* A part of the peak: a category, or sites of one place where no category says what they are. */
struct part {
	const char *name;
	uint64_t bytes;
	unsigned sites; /* 0: a category */
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : strcmp(x->name, y->name);
}

static void add_part(struct gm_doc *doc, struct part **parts, unsigned *count, const char *name,
		     uint64_t bytes, unsigned sites)
{
	struct part *part;

	for (unsigned i = 0; i < *count; i++) {
		part = &(*parts)[i];
		if (!part->sites == !sites && strcmp(part->name, name) == 0) {
			part->bytes += bytes;
			part->sites += sites;
			return;
		}
	}
	part = gm_zone_push(&doc->zone, parts, count, sizeof(*part));
	*part = (struct part){name, bytes, sites};
}

static struct part *peak_parts(struct gm_doc *doc, int device, unsigned level, unsigned *count)
{
	struct part *parts = NULL;

	*count = 0;
	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];
		bool named = strcmp(site->category, "other") != 0;

		if (site->record.device == device && site->record.level == level &&
		    gm_kind_owned(site->record.kind) && site->record.bytes_at_peak && !site->hidden)
			add_part(doc, &parts, count,
				 named ? site->category : gm_stack_label(doc, site->stack),
				 site->record.bytes_at_peak, named ? 0 : 1);
	}
	if (*count)
		qsort(parts, *count, sizeof(*parts), compare_parts);
	return parts;
}

/* The level and device with the highest peak, of PyTorch's blocks where there are some. */
static const struct gm_level_record *main_level(const struct gm_doc *doc)
{
	const struct gm_level_record *most = NULL;

	for (unsigned i = 0; i < doc->levels_count; i++) {
		const struct gm_level_record *level = &doc->levels[i];

		if (level->device >= 0 && level->peak_bytes &&
		    level->level == (doc->torch ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER) &&
		    (!most || level->peak_bytes > most->peak_bytes))
			most = level;
	}
	for (unsigned i = 0; i < doc->levels_count && !most; i++)
		if (doc->levels[i].peak_bytes)
			most = &doc->levels[i];
	return most;
}

/* Of which device and level the peak is, and how high. */
static const char *peak_size(struct gm_doc *doc, const struct gm_level_record *level)
{
	char size[GM_FORMAT_BYTES], device[24];

	return gm_doc_printf(
		doc, "%s%s on %s%s", gm_books_gap(doc, 1ull << GM_TABLE_LEVELS) ? "at least " : "",
		gm_format_size(size, level->peak_bytes), gm_device_name(device, level->device),
		level->level == GM_LEVEL_TORCH ? " in PyTorch's blocks" : "");
}

/* The peak with so many of its parts: "2.00 GiB on device 0 at 3.1 s: 34.2 % weights, ..." */
static const char *peak_text(struct gm_doc *doc, const struct gm_level_record *level,
			     const struct part *parts, unsigned count, unsigned shown)
{
	char time[GM_FORMAT_BYTES], percent[GM_FORMAT_BYTES];
	const char *text = gm_doc_printf(doc, "%s at %s", peak_size(doc, level),
					 gm_format_time(time, (double)level->peak_at_ns / 1e9));
	uint64_t rest = 0;

	for (unsigned i = 0; i < count; i++) {
		if (i >= shown) {
			rest += parts[i].bytes;
			continue;
		}
		text = gm_doc_printf(doc, "%s%s%s %s", text, i ? ", " : ": ",
				     gm_format_percent(percent, parts[i].bytes, level->peak_bytes),
				     parts[i].name);
		if (parts[i].sites > 1)
			text = gm_doc_printf(doc, "%s (%u sites)", text, parts[i].sites);
	}
	if (!rest)
		return text;
	return gm_doc_printf(doc, "%s, %s in %u other%s", text,
			     gm_format_percent(percent, rest, level->peak_bytes), count - shown,
			     count - shown == 1 ? "" : "s");
}

/* Prints as many of the largest parts as fit. */
static void peak_line(struct gm_out *out, struct gm_doc *doc)
{
	const struct gm_level_record *level = main_level(doc);
	const char *texts[MAKEUP_PARTS + 1];
	char percent[GM_FORMAT_BYTES];
	unsigned count, variants = 0;
	struct part *parts;

	if (!level) {
		texts[0] = doc->complete ? "nothing was allocated"
					 : "not known, the file is damaged (see below)";
		answer(out, doc, PEAK, texts, 1);
		return;
	}
	parts = peak_parts(doc, level->device, level->level, &count);
	for (unsigned shown = MAKEUP_PARTS; shown > 0; shown--)
		texts[variants++] = peak_text(doc, level, parts, count, shown);
	if (count) { /* without the time, and then with a part of the name */
		const char *text = gm_doc_printf(
			doc, "%s: %s ", peak_size(doc, level),
			gm_format_percent(percent, parts[0].bytes, level->peak_bytes));
		unsigned room = out->width - (unsigned)strlen(PEAK), used = gm_text_columns(text);

		texts[variants++] = gm_doc_printf(
			doc, "%s%s", text,
			gm_text_shorten(&doc->zone, parts[0].name,
					room > used + LEAST_NAME ? room - used : LEAST_NAME));
	}
	answer(out, doc, PEAK, texts, variants);
}

/* Returns the command that tells more about a finding. */
static const char *command_for(const char *id)
{
	static const struct {
		const char *prefix, *command;
	} more[] = {
		{"leak.", "leaks"},
		{"oom", "oom"},
		{"alloc.failed", "sites"},
		{"fragmentation", "fragmentation"},
		{"usage.", "timeline"},
		{"imbalance", "sites --at peak"},
		{"memory-pressure", "oom"},
	};

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		if (strncmp(id, more[i].prefix, strlen(more[i].prefix)) == 0)
			return more[i].command;
	return NULL;
}

/* The path from the working directory on, where it lies below. */
static const char *near_path(const char *path)
{
	char here[4096];
	size_t length;

	if (!getcwd(here, sizeof(here)))
		return path;
	length = strlen(here);
	return strncmp(path, here, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

/* Prints the first finding, and the command that tells more: as many words of both as fit. */
static void next_finding(struct gm_out *out, struct gm_doc *doc, const struct gm_finding *first)
{
	const char *command = command_for(first->id), *path = near_path(doc->path);
	const char *brief = first->brief ? first->brief : first->title;
	const char *full_tail = "", *tail = "", *texts[4];
	unsigned room = out->width - (unsigned)strlen(NEXT), columns;

	if (command) {
		full_tail = gm_doc_printf(doc, "; see gpumem-report %s %s", command, path);
		tail = gm_doc_printf(doc, "; see %s", command);
	}
	columns = gm_text_columns(tail);
	texts[0] = gm_doc_printf(doc, "%s%s", first->title, full_tail);
	texts[1] = gm_doc_printf(doc, "%s%s", brief, full_tail);
	texts[2] = gm_doc_printf(doc, "%s%s", brief, tail);
	texts[3] = gm_doc_printf(doc, "%s%s",
				 gm_text_shorten(&doc->zone, brief,
						 room > columns ? room - columns : room),
				 tail);
	answer(out, doc, NEXT, texts, 4);
}

static bool has_finding(const struct gm_doc *doc, const char *id)
{
	for (unsigned i = 0; i < doc->findings_count; i++)
		if (strcmp(doc->findings[i].id, id) == 0)
			return true;
	return false;
}

static void next_line(struct gm_out *out, struct gm_doc *doc)
{
	bool pool = has_finding(doc, "pool.opaque");
	const struct gm_finding *first = doc->findings_count ? &doc->findings[0] : NULL;
	const char *gap = gm_books_gap(doc, GM_ALL_TABLES), *texts[2];
	uint64_t failed = gm_doc_failed_calls(doc);

	if (first && first->severity > GM_NOTE) {
		next_finding(out, doc, first);
		return;
	}
	if (doc->exit_bytes == GM_NO_BYTES)
		texts[0] =
			gm_doc_printf(doc, "%s: nothing is wrong %s, leaks at exit are not judged",
				      gm_exit_unknown(doc),
				      doc->lacking ? "in what can be read of it"
				      : gap	   ? "in what was recorded"
						   : "so far");
	else if (gap)
		texts[0] = gm_doc_printf(doc, "%s: nothing is wrong in what %s", gap,
					 doc->lacking ? "can be read of it" : "was recorded");
	else if (!failed && pool)
		texts[0] = "no CUDA call failed or leaked; arrays in a framework's pool are not "
			   "seen (pool.opaque)";
	else if (!failed)
		texts[0] = "nothing to do: no leak, no failed allocation, no bad free";
	else
		texts[0] =
			gm_doc_printf(doc,
				      "nothing to do: no leak, no bad free; %llu call%s for memory "
				      "failed, and the program went on",
				      (unsigned long long)failed, failed == 1 ? "" : "s");
	texts[1] =
		doc->exit_bytes == GM_NO_BYTES && !gap && !doc->lacking
			? gm_doc_printf(doc, "%s: nothing is wrong so far", gm_exit_unknown(doc))
		: failed && !gap && doc->exit_bytes != GM_NO_BYTES
			? gm_doc_printf(doc, "no leak, no bad free; %llu call%s for memory failed",
					(unsigned long long)failed, failed == 1 ? "" : "s")
			: texts[0];
	answer(out, doc, NEXT, texts, 2);
}

static const char *command_text(struct gm_doc *doc)
{
	const char *text = doc->program ? doc->program : "unknown program";

	for (unsigned i = 0; i < doc->command_count; i++)
		text = i ? gm_doc_printf(doc, "%s %s", text, doc->command[i]) : doc->command[0];
	return text;
}

/*
 * Prints the period that the file covers, of a process that was not recorded from its start to its
 * end.
 */
static void print_period(struct gm_out *out, struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;
	char from[GM_FORMAT_BYTES], to[GM_FORMAT_BYTES], age[GM_FORMAT_BYTES];

	if (!header->periods) {
		if (header->recording == GM_SLEEPS)
			gm_printf(out->file, "  asleep: only contexts are recorded until "
					   "gpumem-report start\n");
		return;
	}
	gm_printf(out->file, "  covers a period, from %s",
		gm_format_time(from, gm_seconds(header->period_started_ns)));
	if (header->period_ended_ns)
		gm_printf(out->file, " to %s",
			gm_format_time(to, gm_seconds(header->period_ended_ns)));
	else
		gm_printf(out->file, " on");
	if (header->periods > 1)
		gm_printf(out->file, " (period %u)", header->periods);
	if (header->features & GM_FEATURE_ATTACHED)
		gm_printf(out->file,
			"; attached %s after the process began, by %" PRIu64
			" relocation slots, %" PRIu64 " words of driver tables%s",
			gm_format_time(age, gm_seconds(header->process_age_ns)), header->slots,
			header->tables_words, header->cupti_functions ? " and CUPTI" : "");
	fputc('\n', out->file);
}

static void print_process(struct gm_out *out, struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;
	char time[GM_FORMAT_BYTES], count[GM_FORMAT_BYTES], size[GM_FORMAT_BYTES];

	gm_heading(out, "Process");
	gm_printf(out->file, "  ");
	gm_wrap(out, 4, command_text(doc));
	if (doc->imported) {
		gm_printf(out->file, "  a snapshot of PyTorch over %s of its history, %s changes\n",
			gm_format_time(time, doc->duration_s),
			gm_format_count(count, header->events));
		return;
	}
	gm_printf(out->file, "  pid %u", header->pid);
	if (doc->host)
		gm_printf(out->file, " on %s", doc->host);
	if (header->rank >= 0)
		gm_printf(out->file, ", rank %d", header->rank);
	if (header->rank >= 0 && header->world_size > 0)
		gm_printf(out->file, " of %d", header->world_size);
	gm_printf(out->file, ", %s after %s",
		strcmp(doc->end, "exit") == 0	   ? "ended"
		: strcmp(doc->end, "running") == 0 ? "still running"
		: strcmp(doc->end, "detached") == 0
			? "detached"
			: "killed",
		gm_format_time(time, doc->duration_s));
	gm_printf(out->file, "; %s calls recorded", gm_format_count(count, header->events));
	gm_printf(out->file, ", file %s\n", gm_format_size(size, gm_reader_bytes(doc->reader)));
	print_period(out, doc);
	for (unsigned i = 0; i < doc->devices_count && i < out->top; i++)
		gm_printf(out->file, "  device %d: %s, %s%s\n", doc->devices[i].index,
			doc->devices[i].name ? doc->devices[i].name : "unnamed",
			gm_format_size(size, gm_device_limit(&doc->devices[i])),
			doc->devices[i].record.capacity_bytes != GM_NO_BYTES &&
					doc->devices[i].record.capacity_bytes
				? " (pretended)"
				: "");
}

/*
 * Prints the figures that only PyTorch itself knows: bytes asked for, frees that wait for a stream,
 * and what its private pools reserve, in how many segments.
 */
static void print_known(struct gm_table *table, const struct gm_imported *known,
			const struct gm_torch_record *torch)
{
	char device[24];

	if (!known)
		return;
	for (int row = 0; row < 2; row++) {
		gm_table_cell(table, "%s", gm_device_name(device, torch->device));
		gm_table_cell(table, row ? "PyTorch pending frees" : "PyTorch requested");
		gm_table_size(table, row ? known->active_bytes - torch->allocated_bytes
					 : known->requested_bytes);
		for (int k = 0; k < 7; k++)
			gm_table_cell(table, "-");
	}
	for (unsigned i = 0; i < known->pools_count; i++) {
		gm_table_cell(table, "%s", gm_device_name(device, torch->device));
		gm_table_cell(table, "PyTorch pool %s", known->pools[i].name);
		gm_table_size(table, known->pools[i].reserved_bytes);
		gm_table_count(table, known->pools[i].segments);
		for (int k = 0; k < 6; k++)
			gm_table_cell(table, "-");
	}
}

static void print_pluggable(struct gm_table *table, const struct gm_torch_record *torch)
{
	char device[24];

	gm_table_cell(table, "%s", gm_device_name(device, torch->device));
	gm_table_cell(table, "PyTorch by own allocator");
	gm_table_size(table, torch->reserved_bytes);
	gm_table_cell(table, "-");
	gm_table_size(table, torch->reserved_peak_bytes);
	gm_table_size(table, torch->reserved_total_bytes);
	gm_table_size(table, torch->released_total_bytes);
	for (int k = 0; k < 3; k++)
		gm_table_cell(table, "-");
}

#define FAILED_COLUMN 9 /* of the table of usage, which has it only where something failed */

static void print_usage(struct gm_out *out, struct gm_doc *doc)
{
	static const char *const titles[] = {"<where", "<kind",	    "live",  "count",
					     "peak",   "allocated", "freed", "allocations",
					     "frees",  "failed",    NULL};
	struct gm_table table;
	uint64_t failures = 0;
	char device[24];

	if (!doc->usage_count && !doc->torches_count)
		return;
	gm_heading(out, "Usage");
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < doc->usage_count; i++) {
		const struct gm_usage_record *usage = &doc->usage[i];

		gm_table_cell(&table, "%s", gm_device_name(device, usage->device));
		gm_table_cell(&table, "%s%s", gm_kind_name(usage->kind),
			      gm_kind_owned(usage->kind) ? "" : " (not owned)");
		gm_table_size(&table, usage->current_bytes);
		gm_table_count(&table, usage->current_count);
		gm_table_size(&table, usage->peak_bytes);
		gm_table_size(&table, usage->allocated_bytes);
		gm_table_size(&table, usage->freed_bytes);
		gm_table_count(&table, usage->allocations);
		gm_table_count(&table, usage->frees);
		gm_table_count(&table, usage->failures);
		failures += usage->failures;
	}
	for (unsigned i = 0; i < doc->torches_count; i++) {
		const struct gm_torch_record *torch = &doc->torches[i];

		gm_table_cell(&table, "%s", gm_device_name(device, torch->device));
		gm_table_cell(&table, "PyTorch allocated");
		gm_table_size(&table, torch->allocated_bytes);
		gm_table_count(&table, torch->allocations >= torch->frees
					       ? torch->allocations - torch->frees
					       : GM_NO_BYTES);
		gm_table_size(&table, torch->allocated_peak_bytes);
		gm_table_size(&table, torch->allocated_total_bytes);
		gm_table_size(&table, torch->freed_total_bytes);
		gm_table_count(&table, torch->allocations);
		gm_table_count(&table, torch->frees);
		gm_table_count(&table, torch->ooms);
		failures += torch->ooms;
		gm_table_cell(&table, "%s", gm_device_name(device, torch->device));
		gm_table_cell(&table, "PyTorch reserved");
		gm_table_size(&table, torch->reserved_bytes);
		gm_table_cell(&table, "-");
		gm_table_size(&table, torch->reserved_peak_bytes);
		gm_table_size(&table, torch->reserved_total_bytes);
		gm_table_size(&table, torch->released_total_bytes);
		for (int k = 0; k < 3; k++)
			gm_table_cell(&table, "-");
		print_known(&table, gm_doc_imported(doc, torch->device), torch);
	}
	for (unsigned i = 0; i < doc->pluggables_count && doc->at_ns == GM_NO_BYTES; i++)
		print_pluggable(&table, &doc->pluggables[i]);
	if (!failures)
		gm_table_drop(&table, FAILED_COLUMN);
	gm_table_end(out, &table);
}

static void print_ledger(struct gm_out *out, struct gm_doc *doc)
{
	static const char *const titles[] = {"<what", "<library", "bytes", NULL};

	for (unsigned i = 0; i < doc->ledger_count; i++) {
		const struct gm_ledger *ledger = &doc->ledger[i];
		char size[GM_FORMAT_BYTES], time[GM_FORMAT_BYTES];
		struct gm_table table;

		gm_heading(out, "Ledger of device %d: the driver reports %s at %s",
			   ledger->record.device,
			   gm_format_size(size, ledger->record.process_used_bytes),
			   gm_format_time(time, (double)ledger->record.time_ns / 1e9));
		gm_table_begin(&table, titles);
		table.whole = true; /* the last row is shown, however few are */
		for (unsigned k = 0; k < ledger->rows_count && k < out->top; k++) {
			gm_table_cell(&table, "%s", ledger->rows[k].what);
			gm_table_cell(&table, "%s",
				      ledger->rows[k].library ? ledger->rows[k].library : "");
			gm_table_size(&table, ledger->rows[k].bytes);
		}
		gm_table_cell(&table, "unexplained");
		gm_table_cell(&table, "%s", "");
		gm_table_cell(&table, "%s%s", ledger->record.unexplained_bytes < 0 ? "-" : "",
			      gm_format_size(size, magnitude(ledger->record.unexplained_bytes)));
		gm_table_end(out, &table);
		gm_print_more(out, "  ", ledger->rows_count, "row");
	}
}

/* Prints the memory of graphs, by the pools of their captures. */
static void print_graphs(struct gm_out *out, struct gm_doc *doc)
{
	static const char *const titles[] = {"device",	 "<captured at", "captures",
					     "live",	 "private pool", "in use",
					     "executables", "next",	 NULL};
	struct gm_table table;
	unsigned shown = 0;

	for (unsigned i = 0; i < doc->graph_pools_count; i++) {
		const struct gm_graph_pool *pool = &doc->graph_pools[i];

		if ((!pool->graphs && !pool->taken_bytes) || shown++ >= out->top)
			continue;
		if (shown == 1) {
			gm_heading(out, "CUDA graphs");
			gm_table_begin(&table, titles);
		}
		gm_table_cell(&table, "%d", pool->device);
		gm_table_cell(&table, "%s", gm_stack_label(doc, gm_doc_stack(doc, pool->stack)));
		gm_table_cell(&table, "%llu", (unsigned long long)pool->captures);
		gm_table_cell(&table, "%llu", (unsigned long long)pool->live_graphs);
		gm_table_size(&table, pool->reserved_bytes);
		gm_table_size(&table, pool->used_bytes);
		gm_table_size(&table, pool->executable_bytes);
		gm_table_size(&table, pool->next_bytes);
	}
	if (!shown)
		return;
	gm_table_end(out, &table);
	gm_print_more(out, "  ", shown, "line");
}

static void print_phases(struct gm_out *out, struct gm_doc *doc)
{
	static const char *const titles[] = {"<device", "<phase", "peak", "retained", NULL};
	struct gm_table table;
	unsigned named = 0;

	for (unsigned i = 0; i < doc->phases_count; i++)
		named += strcmp(doc->phases[i].phase, "other") != 0;
	if (!named)
		return;
	gm_heading(out, "Phases");
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < doc->phases_count; i++) {
		gm_table_cell(&table, "%d", doc->phases[i].device);
		gm_table_cell(&table, "%s", doc->phases[i].phase);
		gm_table_size(&table, doc->phases[i].peak_bytes);
		gm_table_size(&table, doc->phases[i].retained_bytes);
	}
	gm_table_end(out, &table);
}

/* PyTorch's segments hold blocks of every category: on its devices the blocks' level tells. */
static bool told(const struct gm_doc *doc, const struct gm_category *category)
{
	return !(doc->torch && category->level == GM_LEVEL_DRIVER && category->device >= 0) &&
	       (category->bytes_at_peak || category->current_bytes);
}

static void print_categories(struct gm_out *out, struct gm_doc *doc)
{
	static const char *const titles[] = {"<where",	    "<level", "<category",
					     "at the peak", "live",   NULL};
	struct gm_table table;
	unsigned named = 0;
	char device[24];

	for (unsigned i = 0; i < doc->categories_count; i++)
		named += told(doc, &doc->categories[i]) &&
			 strcmp(doc->categories[i].category, "other") != 0;
	if (!named)
		return;
	gm_heading(out, "Categories");
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < doc->categories_count; i++) {
		if (!told(doc, &doc->categories[i]))
			continue;
		gm_table_cell(&table, "%s", gm_device_name(device, doc->categories[i].device));
		gm_table_cell(&table, "%s", gm_level_title(doc->categories[i].level));
		gm_table_cell(&table, "%s", doc->categories[i].category);
		gm_table_size(&table, doc->categories[i].bytes_at_peak);
		gm_table_size(&table, doc->categories[i].current_bytes);
	}
	gm_table_end(out, &table);
}

/* A site that grows is also live at exit: one of the two is enough for a reader. */
static bool repeats(const struct gm_finding *findings, unsigned index)
{
	if (strcmp(findings[index].id, "leak.exit") != 0 &&
	    strcmp(findings[index].id, "leak.pinned") != 0)
		return false;
	for (unsigned i = 0; i < index; i++)
		if (findings[i].site != GM_NO_SITE && findings[i].site == findings[index].site &&
		    strcmp(findings[i].id, "leak.grow") == 0)
			return true;
	return false;
}

/* True if an earlier finding gave this advice: advice that all leaks share is read once. */
static bool said_before(const struct gm_finding *findings, unsigned index, const char *advice)
{
	for (unsigned i = 0; i < index; i++)
		for (unsigned k = 0; k < findings[i].advice_count; k++)
			if (!repeats(findings, i) && strcmp(findings[i].advice[k], advice) == 0)
				return true;
	return false;
}

void gm_text_findings(struct gm_out *out, const struct gm_finding *findings, unsigned count)
{
	static const enum gm_style styles[] = {GM_DIM, GM_YELLOW, GM_RED};
	unsigned shown = 0, left = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct gm_finding *finding = &findings[i];

		if (repeats(findings, i))
			continue;
		if (shown == out->top) {
			left++;
			continue;
		}
		if (!shown++)
			gm_heading(out, "Findings");
		gm_print(out, styles[finding->severity], "  %-7s ",
			 gm_severity_name(finding->severity));
		gm_print(out, GM_DIM, "%s", finding->id);
		if (finding->device >= 0)
			gm_print(out, GM_DIM, "  device %d", finding->device);
		gm_printf(out->file, "\n          ");
		gm_wrap(out, 10, finding->title);
		if (finding->evidence) {
			gm_printf(out->file, "          ");
			gm_wrap(out, 10, finding->evidence);
		}
		for (unsigned k = 0; k < finding->advice_count; k++) {
			if (said_before(findings, i, finding->advice[k]))
				continue;
			gm_printf(out->file, "          - ");
			gm_wrap(out, 12, finding->advice[k]);
		}
	}
	if (left)
		gm_printf(out->file, "  %u more finding%s (--top)\n", left, left == 1 ? "" : "s");
}

/* ", by close_device (device.c:12)"; "" where the call is not known. */
static const char *who(struct gm_doc *doc, uint32_t stack)
{
	const struct gm_stack *place = gm_doc_stack(doc, stack);

	return place ? gm_doc_printf(doc, ", by %s", gm_stack_label(doc, place)) : "";
}

static void print_implicit(struct gm_out *out, struct gm_doc *doc)
{
	static const char *const causes[GM_IMPLICIT_CAUSES] = {"a device reset", "a context's end",
							       "a pool's end", "a graph"};
	char size[GM_FORMAT_BYTES];

	for (unsigned i = 0; i < doc->implicit_count; i++)
		if (doc->implicit[i].count)
			gm_printf(out->file,
				  "  %s in %llu allocation%s went with %s on device %d%s\n",
				  gm_format_size(size, doc->implicit[i].bytes),
				  (unsigned long long)doc->implicit[i].count,
				  doc->implicit[i].count == 1 ? "" : "s",
				  causes[doc->implicit[i].cause], doc->implicit[i].device,
				  who(doc, doc->implicit[i].stack));
}

/* The place that holds most physical handles of a device; NULL. */
static const struct gm_site *most_handles(const struct gm_doc *doc, int device)
{
	const struct gm_site *most = NULL;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_site *site = &doc->sites[i];

		if (site->record.kind == GM_KIND_VMM && site->record.device == device &&
		    site->record.live_bytes &&
		    (!most || site->record.live_bytes > most->record.live_bytes))
			most = site;
	}
	return most;
}

/* Physical memory that was created and has no address. */
static void print_unmapped(struct gm_out *out, struct gm_doc *doc)
{
	char size[GM_FORMAT_BYTES];

	for (unsigned i = 0; i < doc->vmm_count; i++) {
		const struct gm_vmm_record *record = &doc->vmm[i];
		const struct gm_site *most = most_handles(doc, record->device);

		if (record->created_bytes <= record->mapped_bytes)
			continue;
		gm_printf(out->file,
			  "  %s of physical memory (cuMemCreate) on device %d is mapped "
			  "nowhere%s%s\n",
			  gm_format_size(size, record->created_bytes - record->mapped_bytes),
			  record->device, most ? "; most handles are of " : "",
			  most ? gm_stack_label(doc, most->stack) : "");
	}
}

static void print_teardown(struct gm_out *out, const struct gm_doc *doc)
{
	char size[GM_FORMAT_BYTES];

	if (doc->teardown_count)
		gm_printf(out->file,
			"  %s in %llu allocation%s was freed after the program's last work\n",
			gm_format_size(size, doc->teardown_bytes),
			(unsigned long long)doc->teardown_count,
			doc->teardown_count == 1 ? "" : "s");
}

void gm_text_summary(struct gm_out *out, struct gm_doc *doc, bool quiet)
{
	seen_line(out, doc);
	peak_line(out, doc);
	next_line(out, doc);
	if (quiet)
		return;
	print_process(out, doc);
	print_usage(out, doc);
	print_implicit(out, doc);
	print_unmapped(out, doc);
	print_teardown(out, doc);
	gm_text_holes(out, doc);
	print_ledger(out, doc);
	print_graphs(out, doc);
	print_phases(out, doc);
	gm_text_range_table(out, doc);
	print_categories(out, doc);
	gm_text_findings(out, doc->findings, doc->findings_count);
	if (doc->warnings_count)
		gm_heading(out, "About this file");
	for (unsigned i = 0; i < doc->warnings_count && i < out->top; i++) {
		gm_printf(out->file, "  ");
		gm_wrap(out, 2, doc->warnings[i]);
	}
	gm_print_more(out, "  ", doc->warnings_count, "warning");
}
