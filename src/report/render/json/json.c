/*
 * The document's parts as JSON: one small function per key of contract.md, one table that puts them
 * together. See json.h. The parts about sites are in json_sites.c.
 */
#include "report/render/json/json.h"
#include "report/doc/enum_names.h"
#include "report/job/job.h"
#include "report/journal/journal_file.h"
#include "report/render/json/internal.h"
#include "report/render/json/json_bound.h"
#include "report/stacks/stacks.h"
#include "account/kinds.h"
#include <errno.h>
#include <math.h>
#include <string.h>

static json_t *number_or_null(int32_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

/* An object of "NAME=value\n" lines. */
static json_t *settings(const char *text)
{
	json_t *object = json_object();

	while (text && *text) {
		size_t line = strcspn(text, "\n"), name = strcspn(text, "=\n");

		if (text[name] == '=') {
			char *key = strndup(text, name);

			if (key)
				json_object_set_new(object, key,
						    json_stringn(text + name + 1, line - name - 1));
			free(key);
		}
		text += line;
		text += *text == '\n';
	}
	return object;
}

static json_t *file(struct gm_doc *doc)
{
	return json_pack("{s:o, s:b, s:b, s:b, s:o, s:o}", "path", gm_json_string(doc->path),
			 "complete", doc->complete, "clean_exit", doc->clean_exit, "totals_exact",
			 !gm_books_gap(doc, 1ull << GM_TABLE_LEVELS), "dropped_events",
			 gm_json_bytes(doc->header->dropped_records), "warnings",
			 gm_json_strings(doc->warnings, doc->warnings_count));
}

static json_t *process(struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}",
		"pid", header->pid ? json_integer(header->pid) : json_null(), "ppid",
		header->ppid ? json_integer(header->ppid) : json_null(), "command",
		gm_json_strings(doc->command, doc->command_count), "cwd", gm_json_string(doc->cwd),
		"host", gm_json_string(doc->host), "rank", number_or_null(header->rank),
		"world_size", number_or_null(header->world_size), "started_at",
		gm_json_string(doc->started_at), "duration_s",
		isnan(doc->duration_s) ? json_null() : json_real(doc->duration_s), "end", doc->end,
		"local_rank", number_or_null(header->local_rank), "job", gm_json_string(doc->job),
		"attempt", gm_json_string(doc->attempt), "revision", gm_json_string(doc->revision),
		"superseded", gm_json_string(doc->superseded));
}

static json_t *history(struct gm_doc *doc)
{
	const struct gm_journal_header *journal =
		doc->journal ? gm_journal_header(doc->journal) : NULL;

	return json_pack(
		"{s:s, s:o, s:o, s:o}", "source",
		journal			      ? "all"
		: doc->header->event_capacity ? "ring"
					      : "off",
		"bytes", gm_json_bytes(journal ? gm_journal_bytes(doc->journal) : GM_NO_BYTES),
		"lost", gm_json_bytes(journal ? journal->lost : GM_NO_BYTES), "ends_s",
		journal && journal->lost ? gm_json_seconds(journal->lost_from_ns) : json_null());
}

/* null unless walks were compared. */
static json_t *unwinder_check(const struct gm_header *header)
{
	if (!header->walks_compared && !header->walks_not_compared)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "compared", gm_json_bytes(header->walks_compared),
			 "differing", gm_json_bytes(header->walks_differing), "not_compared",
			 gm_json_bytes(header->walks_not_compared));
}

static const char *recording(const struct gm_header *header)
{
	if (header->end != GM_END_NONE)
		return "ended";
	return header->recording == GM_SLEEPS ? "asleep" : "recording";
}

/* Describes the calls and the memory that a recording by attach does not see. */
static json_t *not_seen(const struct gm_header *header)
{
	json_t *list = json_array();

	if (!header->cupti_functions)
		json_array_append_new(list, json_string("calls by addresses that the program had "
							"looked up itself before"));
	json_array_append_new(list, json_string("what a pool other than PyTorch's hands out of "
						"memory that it holds"));
	return list;
}

/* The latest stretch of a process that was not recorded from its start; null of one that was. */
static json_t *period(struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;
	bool attached = header->features & GM_FEATURE_ATTACHED;

	if (!header->periods)
		return json_null();
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "number",
		json_integer(header->periods), "started_s",
		gm_json_seconds(header->period_started_ns), "ended_s",
		header->period_ended_ns ? gm_json_seconds(header->period_ended_ns) : json_null(),
		"attached", json_boolean(attached), "process_age_s",
		attached ? gm_json_seconds(header->process_age_ns) : json_null(), "before_frees",
		gm_json_bytes(header->before_frees), "before_freed_bytes",
		gm_json_bytes(header->before_freed_bytes), "slots",
		attached ? gm_json_bytes(header->slots) : json_null(), "table_words",
		attached ? gm_json_bytes(header->tables_words) : json_null(), "cupti_functions",
		attached ? json_integer(header->cupti_functions) : json_null(), "cupti_reason",
		attached && header->cupti_string
			? gm_json_string(gm_reader_string(doc->reader, header->cupti_string))
			: json_null(),
		"not_seen", attached ? not_seen(header) : json_null());
}

static json_t *tracer(struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;
	const char *names = gm_reader_string(doc->reader, header->settings_string);
	json_t *object;

	object = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:s, s:o, s:i}",
		"version", gm_json_string(doc->version), "backend", gm_json_string(doc->backend),
		"events", gm_json_bytes(header->events + doc->late_events), "file_bytes",
		gm_json_bytes(gm_reader_bytes(doc->reader)), "own_bytes",
		gm_json_bytes(header->own_bytes), "overhead_s",
		gm_json_seconds(header->overhead_ns), "settings", settings(names), "unwinder",
		gm_json_string(doc->unwinder), "python", gm_json_string(doc->python),
		"unwinder_check", unwinder_check(header), "unknown_frees",
		gm_json_bytes(header->unknown_frees), "teardown_frees",
		gm_json_bytes(header->teardown_frees), "lost_stacks",
		gm_json_bytes(header->lost_stacks), "passed_calls",
		gm_json_bytes(header->passed_calls), "history", history(doc), "recording",
		recording(header), "period", period(doc), "other_libcudas",
		(int)header->other_libcudas);
	if (header->sample_bytes)
		json_object_set_new(object, "sample_bytes", gm_json_bytes(header->sample_bytes));
	return object;
}

static json_t *devices(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->devices_count; i++) {
		const struct gm_device *device = &doc->devices[i];
		uint64_t total = device->record.total_bytes,
			 capacity = device->record.capacity_bytes;

		json_array_append_new(list,
				      json_pack("{s:i, s:o, s:o, s:o, s:o}", "index", device->index,
						"name", gm_json_string(device->name), "uuid",
						gm_json_string(device->uuid), "total_bytes",
						gm_json_bytes(total ? total : GM_NO_BYTES),
						"capacity_bytes",
						gm_json_bytes(capacity ? capacity : GM_NO_BYTES)));
	}
	return list;
}

static json_t *totals(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->levels_count; i++) {
		const struct gm_level_record *level = &doc->levels[i];

		if (level->level == GM_LEVEL_DRIVER && level->device >= 0)
			json_array_append_new(list,
					      gm_json_total(level, gm_device_limit(gm_doc_device(
									   doc, level->device))));
	}
	return list;
}

static json_t *usage(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->usage_count; i++) {
		const struct gm_usage_record *usage = &doc->usage[i];

		json_array_append_new(
			list,
			json_pack("{s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
				  "device", gm_json_device(usage->device), "kind",
				  gm_kind_name(usage->kind), "owned", gm_kind_owned(usage->kind),
				  "current_bytes", gm_json_bytes(usage->current_bytes),
				  "current_count", gm_json_bytes(usage->current_count),
				  "peak_bytes", gm_json_bytes(usage->peak_bytes), "allocated_bytes",
				  gm_json_bytes(usage->allocated_bytes), "freed_bytes",
				  gm_json_bytes(usage->freed_bytes), "allocations",
				  gm_json_bytes(usage->allocations), "frees",
				  gm_json_bytes(usage->frees), "failures",
				  gm_json_bytes(usage->failures)));
	}
	return list;
}

static json_t *pools(struct gm_doc *doc)
{
	static const char *const types[] = {"default", "explicit", "graph", "explicit"};
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->pools_count; i++) {
		const struct gm_pool_record *pool = &doc->pools[i];

		json_array_append_new(
			list,
			json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "device",
				  gm_json_device(pool->device), "pool",
				  pool->type <= GM_POOL_IMPORTED ? types[pool->type] : "explicit",
				  "reserved_bytes", gm_json_bytes(pool->reserved_bytes),
				  "used_bytes", gm_json_bytes(pool->used_bytes),
				  "reserved_peak_bytes", gm_json_bytes(pool->reserved_peak_bytes),
				  "used_peak_bytes", gm_json_bytes(pool->used_peak_bytes),
				  "pending_free_bytes", gm_json_bytes(pool->pending_free_bytes),
				  "release_threshold_bytes",
				  pool->configured ? gm_json_bytes(pool->release_threshold_bytes)
						   : json_null(),
				  "trims", gm_json_bytes(pool->trims), "trimmed_bytes",
				  gm_json_bytes(pool->trimmed_bytes)));
	}
	return list;
}

static json_t *vmm(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->vmm_count; i++) {
		const struct gm_vmm_record *vmm = &doc->vmm[i];

		json_array_append_new(
			list, json_pack("{s:o, s:o, s:o, s:o, s:o}", "device",
					gm_json_device(vmm->device), "created_bytes",
					gm_json_bytes(vmm->created_bytes), "mapped_bytes",
					gm_json_bytes(vmm->mapped_bytes), "reserved_va_bytes",
					gm_json_bytes(vmm->reserved_va_bytes), "handles",
					gm_json_bytes(vmm->handles)));
	}
	return list;
}

static const struct gm_fragmentation *torch_holes(const struct gm_doc *doc, int device)
{
	for (unsigned i = 0; i < doc->fragmentation_count; i++)
		if (doc->fragmentation[i].device == device &&
		    strcmp(doc->fragmentation[i].level, "torch") == 0)
			return &doc->fragmentation[i];
	return NULL;
}

/*
 * Writes the bytes that a pluggable allocator holds of the driver; nobody tells how it divides
 * them.
 */
static json_t *pluggable(const struct gm_doc *doc, const struct gm_torch_record *torch)
{
	static const char *const unknown[] = {"allocated_bytes",   "allocated_peak_bytes",
					      "allocations",	   "frees",
					      "segments",	   "active_bytes",
					      "requested_bytes",   "allocated_total_bytes",
					      "freed_total_bytes", "inactive_split_bytes",
					      "releasable_bytes",  "largest_free_bytes",
					      "alloc_retries",	   "ooms",
					      "private_pools"};
	bool now = doc->at_ns == GM_NO_BYTES; /* the history does not tell whose memory it was */
	json_t *row = json_pack(
		"{s:o, s:s, s:o, s:o, s:o}", "device", gm_json_device(torch->device), "allocator",
		"pluggable", "reserved_bytes",
		gm_json_bytes(now ? torch->reserved_bytes : GM_NO_BYTES), "reserved_peak_bytes",
		gm_json_bytes(now ? torch->reserved_peak_bytes : GM_NO_BYTES),
		"reserved_total_bytes",
		gm_json_bytes(now ? torch->reserved_total_bytes : GM_NO_BYTES));

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		json_object_set_new(row, unknown[i], json_null());
	return row;
}

/* Null where the file does not tell private pools apart: only snapshots do. */
static json_t *private_pools(const struct gm_imported *known)
{
	json_t *list = known ? json_array() : json_null();

	for (unsigned i = 0; known && i < known->pools_count; i++) {
		const struct gm_private_pool *pool = &known->pools[i];

		json_array_append_new(list, json_pack("{s:s, s:i, s:o, s:o}", "pool", pool->name,
						      "segments", (int)pool->segments,
						      "reserved_bytes",
						      gm_json_bytes(pool->reserved_bytes),
						      "allocated_bytes",
						      gm_json_bytes(pool->allocated_bytes)));
	}
	return list;
}

static json_t *torch(struct gm_doc *doc)
{
	static const char *const allocators[] = {"native", "expandable_segments", "cudaMallocAsync",
						 "pluggable"};
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->torches_count; i++) {
		const struct gm_torch_record *torch = &doc->torches[i];
		const struct gm_fragmentation *holes = torch_holes(doc, torch->device);
		const struct gm_imported *known = gm_doc_imported(doc, torch->device);
		uint64_t largest = holes ? holes->largest_free_bytes : GM_NO_BYTES;

		json_array_append_new(
			list,
			json_pack(
				"{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
				"s:o, s:o, "
				"s:o, s:o, s:o, s:o, s:o}",
				"device", gm_json_device(torch->device), "allocator",
				torch->allocator < 4 ? allocators[torch->allocator] : "native",
				"reserved_bytes", gm_json_bytes(torch->reserved_bytes),
				"reserved_peak_bytes", gm_json_bytes(torch->reserved_peak_bytes),
				"allocated_bytes", gm_json_bytes(torch->allocated_bytes),
				"allocated_peak_bytes", gm_json_bytes(torch->allocated_peak_bytes),
				"allocations", gm_json_bytes(torch->allocations), "frees",
				gm_json_bytes(torch->frees), "segments",
				holes ? json_integer(holes->segments) : json_null(), "active_bytes",
				gm_json_bytes(known ? known->active_bytes : GM_NO_BYTES),
				"requested_bytes",
				gm_json_bytes(known ? known->requested_bytes : GM_NO_BYTES),
				"allocated_total_bytes",
				gm_json_bytes(torch->allocated_total_bytes), "freed_total_bytes",
				gm_json_bytes(torch->freed_total_bytes), "reserved_total_bytes",
				gm_json_bytes(torch->reserved_total_bytes), "inactive_split_bytes",
				gm_json_bytes(holes ? holes->split_bytes : GM_NO_BYTES),
				"releasable_bytes",
				gm_json_bytes(holes ? holes->releasable_bytes : GM_NO_BYTES),
				"largest_free_bytes", gm_json_bytes(largest), "alloc_retries",
				gm_json_bytes(torch->alloc_retries), "ooms",
				gm_json_bytes(torch->ooms), "private_pools",
				private_pools(known)));
	}
	for (unsigned i = 0; i < doc->pluggables_count; i++)
		json_array_append_new(list, pluggable(doc, &doc->pluggables[i]));
	return list;
}

static json_t *marks(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->marks_count; i++)
		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:o}", "name",
						gm_json_string(doc->marks[i].name), "time_s",
						gm_json_seconds(doc->marks[i].record.time_ns),
						"current_bytes",
						gm_json_bytes(doc->marks[i].record.current_bytes)));
	return list;
}

static json_t *points(const uint64_t *values, unsigned count)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(list, gm_json_bytes(values[i]));
	return list;
}

static json_t *timeline(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->timeline_count; i++) {
		const struct gm_timeline_record *line = &doc->timeline[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:s, s:s, s:f, s:o, s:o, s:o, s:o}",
						"device", gm_json_device(line->device), "level",
						gm_series_level(line->series), "series",
						gm_series_name(line->series), "start_s", 0.0,
						"width_s", gm_json_seconds(line->width_ns), "min",
						points(line->min_bytes, line->points), "max",
						points(line->max_bytes, line->points), "last",
						points(line->last_bytes, line->points)));
	}
	return list;
}

static json_t *implicit(struct gm_doc *doc)
{
	static const char *const causes[GM_IMPLICIT_CAUSES] = {"device-reset", "context-destroy",
							       "pool-destroy", "graph"};
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->implicit_count; i++) {
		const struct gm_implicit_record *record = &doc->implicit[i];

		json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o, s:o}", "cause",
						      causes[record->cause], "device",
						      gm_json_device(record->device), "bytes",
						      gm_json_bytes(record->bytes), "count",
						      gm_json_bytes(record->count), "stack",
						      gm_json_stack(gm_doc_stack(
							      doc, record->stack))));
	}
	return list;
}

static const char *sample_reason(const struct gm_ledger_record *record)
{
	static const char *const reasons[] = {"context", "peak",     "oom",
					      "mark",	 "periodic", "cost", "period"};

	return record->reason < sizeof(reasons) / sizeof(reasons[0]) ? reasons[record->reason]
								      : "other";
}

/* Lists the objects that take memory beside allocations, by the line that made them. */
static json_t *cost_objects(struct gm_doc *doc, int device)
{
	static const char *const names[GM_COST_KINDS] = {[GM_COST_MODULE] = "modules",
							 [GM_COST_STREAM] = "streams",
							 [GM_COST_GRAPH] = "graphs"};
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->costs_count; i++) {
		const struct gm_cost_record *record = &doc->costs[i];

		if (record->device != device || record->cost >= GM_COST_KINDS ||
		    !names[record->cost] || !record->calls)
			continue;
		json_array_append_new(
			list, json_pack("{s:s, s:o, s:o, s:o, s:I, s:o, s:o}", "what",
					names[record->cost], "made", gm_json_bytes(record->calls),
					"destroyed", gm_json_bytes(record->ends), "live",
					gm_json_bytes(record->live), "bytes",
					(json_int_t)record->bytes, "nodes",
					gm_json_bytes(record->nodes), "stack",
					gm_json_stack(gm_doc_stack(doc, record->stack))));
	}
	return list;
}

static json_t *captures_of(struct gm_doc *doc, const struct gm_graph_pool *pool)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < pool->list_count; i++) {
		const struct gm_capture_record *record = &doc->captures[pool->list[i]];

		json_array_append_new(
			list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "time_s",
					gm_json_seconds(record->time_ns), "captures",
					gm_json_bytes(record->captures), "graphs",
					gm_json_bytes(record->made), "live_graphs",
					gm_json_bytes(record->live), "nodes",
					gm_json_bytes(record->nodes), "taken_bytes",
					gm_json_bytes(record->taken_bytes), "executable_bytes",
					(json_int_t)record->executable_bytes, "stack",
					gm_json_stack(gm_doc_stack(doc, record->stack))));
	}
	return list;
}

static json_t *graph_pools(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->graph_pools_count; i++) {
		const struct gm_graph_pool *pool = &doc->graph_pools[i];

		json_array_append_new(
			list,
			json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
				  "s:o}",
				  "device", gm_json_device(pool->device), "private",
				  pool->root != GM_NONE, "captures", gm_json_bytes(pool->captures),
				  "graphs", gm_json_bytes(pool->graphs), "live_graphs",
				  gm_json_bytes(pool->live_graphs), "nodes",
				  gm_json_bytes(pool->nodes), "segments",
				  gm_json_bytes(pool->segments), "reserved_bytes",
				  gm_json_bytes(pool->reserved_bytes), "used_bytes",
				  gm_json_bytes(pool->used_bytes), "taken_bytes",
				  gm_json_bytes(pool->taken_bytes), "executable_bytes",
				  gm_json_bytes(pool->executable_bytes), "next_bytes",
				  gm_json_bytes(pool->next_bytes), "each",
				  captures_of(doc, pool)));
	}
	return list;
}

/* Samples over time: what the driver said, and what of it was not explained. */
static json_t *ledger_history(const struct gm_ledger *ledger)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < ledger->history_count; i++) {
		const struct gm_ledger_record *record = &ledger->history[i];

		json_array_append_new(
			list,
			json_pack("{s:o, s:s, s:o, s:o, s:o}", "time_s",
				  gm_json_seconds(record->time_ns), "reason",
				  sample_reason(record),
				  "process_used_bytes", gm_json_bytes(record->process_used_bytes),
				  "tracked_bytes", gm_json_bytes(record->tracked_physical_bytes),
				  "unexplained_bytes", json_integer(record->unexplained_bytes)));
	}
	return list;
}

/* PyTorch's blocks from before the period, by its own total; GM_NO_BYTES where it told nothing. */
static uint64_t before_torch_bytes(const struct gm_doc *doc, int index)
{
	const struct gm_device *device = gm_doc_device(doc, index);

	return doc->header->periods && device ? device->record.before_torch_bytes : GM_NO_BYTES;
}

static json_t *ledger(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->ledger_count; i++) {
		const struct gm_ledger *ledger = &doc->ledger[i];
		json_t *rows = json_array();

		for (unsigned k = 0; k < ledger->rows_count; k++)
			json_array_append_new(
				rows, json_pack("{s:s, s:o, s:o}", "what", ledger->rows[k].what,
						"library", gm_json_string(ledger->rows[k].library),
						"bytes", gm_json_bytes(ledger->rows[k].bytes)));
		json_array_append_new(
			list,
			json_pack(
				"{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o}",
				"device", gm_json_device(ledger->record.device), "before_bytes",
				gm_json_bytes(doc->header->periods ? ledger->record.before_bytes
								   : GM_NO_BYTES),
				"before_torch_bytes",
				gm_json_bytes(before_torch_bytes(doc, ledger->record.device)),
				"process_used_bytes",
				gm_json_bytes(ledger->record.process_used_bytes), "source",
				ledger->record.source == GM_LEDGER_NVML_PROCESS ? "nvml-process"
										: "device-delta",
				"rows", rows, "unexplained_bytes",
				json_integer(ledger->record.unexplained_bytes),
				"unexplained_growth_bytes",
				gm_json_bytes(ledger->unexplained_growth_bytes), "time_s",
				gm_json_seconds(ledger->record.time_ns), "reason",
				sample_reason(&ledger->record), "later_calls",
				gm_json_bytes(ledger->record.later_calls), "objects",
				cost_objects(doc, ledger->record.device), "history",
				ledger_history(ledger)));
	}
	return list;
}

static json_t *plan(struct gm_doc *doc)
{
	(void)doc;
	return json_null();
}

static json_t *no_list(struct gm_doc *doc)
{
	(void)doc;
	return json_array();
}

/* The document's keys, in the order of contract.md. `sites` is written, not made. */
static const struct {
	const char *key;
	json_t *(*make)(struct gm_doc *doc);
	bool object; /* null where several files have a document each, else an empty list */
} keys[] = {
	{"file", file, true},
	{"process", process, true},
	{"tracer", tracer, true},
	{"devices", devices, false},
	{"totals", totals, false},
	{"usage", usage, false},
	{"pools", pools, false},
	{"graph_pools", graph_pools, false},
	{"vmm", vmm, false},
	{"torch", torch, false},
	{"fragmentation", gm_json_fragmentation, false},
	{"retries", gm_json_retries, true},
	{"ooms", gm_json_ooms, false},
	{"sites", NULL, false},
	{"leaks", gm_json_leaks, true},
	{"errors", gm_json_errors, false},
	{"failures", gm_json_failures, false},
	{"implicit_frees", implicit, false},
	{"ledger", ledger, false},
	{"phases", gm_json_phases, false},
	{"categories", gm_json_categories, false},
	{"marks", marks, false},
	{"ranges", gm_json_ranges, false},
	{"timeline", timeline, false},
	{"findings", gm_json_findings, false},
	{"gates", gm_json_gates, false},
	{"holders", gm_json_holders, false},
	{"holders_taken", gm_json_holders_taken, true},
	{"runs", no_list, false},
	{"job", plan, true},
	{"plan", plan, true},
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static void put_sites(struct gm_json_out *out, struct gm_doc *doc)
{
	gm_json_put_name(out, "sites");
	gm_json_put_sites(out, doc);
}

/* The value of a key where no single file is described. */
static json_t *nothing(size_t key)
{
	return keys[key].object ? json_null() : json_array();
}

/* Several keys of a command's own. */
static void put_members(struct gm_json_out *out, json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
		gm_json_put_key(out, key, json_incref(value));
	json_decref(object);
}

static void put_doc(struct gm_json_out *out, struct gm_doc *doc, const char *more, json_t *value,
		    json_t *const *made)
{
	gm_json_put_text(out, "{\"schema_version\": 1");
	for (size_t i = 0; i < KEYS; i++)
		if (more && !strcmp(keys[i].key, more))
			continue;
		else if (!doc)
			gm_json_put_key(out, keys[i].key, nothing(i));
		else if (keys[i].make)
			gm_json_put_key(out, keys[i].key, made ? made[i] : keys[i].make(doc));
		else
			put_sites(out, doc);
	if (more)
		gm_json_put_key(out, more, value);
	else if (value)
		put_members(out, value);
	gm_json_put_text(out, "}");
}

/* All keys are made first, because they tell which sites are named. */
static void put_bounded(struct gm_json_out *out, struct gm_doc *doc, const char *more,
			json_t *value)
{
	const struct gm_json_bound *whole = out->bound;
	struct gm_json_bound bound = {whole->most, json_copy(whole->named)};
	json_t *made[KEYS] = {0};

	out->bound = &bound;
	for (size_t i = 0; i < KEYS; i++) {
		if (!keys[i].make || (more && !strcmp(keys[i].key, more)))
			continue;
		made[i] = keys[i].make(doc);
		gm_json_bound(&bound, keys[i].key, made[i]);
	}
	if (value)
		gm_json_bound(&bound, more ? more : "", value);
	put_doc(out, doc, more, value, made);
	json_decref(bound.named);
	out->bound = whole;
}

void gm_json_put_doc(struct gm_json_out *out, struct gm_doc *doc, const char *more, json_t *value)
{
	if (doc && out->bound)
		put_bounded(out, doc, more, value);
	else
		put_doc(out, doc, more, value, NULL);
}

/* A device of the job. Beside what a process has of it: which one it is, and how many use it. */
static json_t *job_total(const struct gm_job_total *total)
{
	const struct gm_device *device = gm_doc_device(total->first, total->level.device);
	json_t *object = gm_json_total(&total->level, gm_device_limit(device));

	json_object_set_new(object, "peak_at_s", json_null());
	json_object_set_new(object, "host", gm_json_string(total->first->host));
	json_object_set_new(object, "uuid", gm_json_string(device ? device->uuid : NULL));
	json_object_set_new(object, "processes", json_integer(total->processes));
	return object;
}

/* Findings of the job, with the ranks that have them. */
static json_t *job_findings(const struct gm_job *job)
{
	json_t *list = gm_json_finding_list(NULL, job->findings, job->findings_count);

	for (unsigned i = 0; i < job->findings_count; i++) {
		json_t *ranks = json_array();

		for (unsigned k = 0; k < job->findings[i].ranks_count; k++)
			json_array_append_new(ranks, json_integer(job->findings[i].ranks[k]));
		json_object_set_new(json_array_get(list, i), "ranks", ranks);
		if (job->parts_count)
			json_object_set_new(json_array_get(list, i), "job",
					    gm_json_string(job->findings[i].job));
	}
	return list;
}

static json_t *process_of(const struct gm_doc *doc)
{
	return json_pack("{s:I, s:o, s:o}", "pid", (json_int_t)doc->header->pid, "rank",
			 number_or_null(doc->header->rank), "host", gm_json_string(doc->host));
}

/* Memory that a process freed and others had open. */
static json_t *freed_shares(const struct gm_job *job)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < job->freed_shares_count; i++) {
		const struct gm_freed_share *row = &job->freed_shares[i];

		json_array_append_new(
			list,
			json_pack("{s:o, s:s, s:o, s:I, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o}",
				  "device", gm_json_device(row->device), "kind",
				  gm_kind_name(row->kind), "bytes", gm_json_bytes(row->bytes),
				  "blocks", (json_int_t)row->blocks, "first_freed_s",
				  gm_json_seconds(row->first_freed_ns), "matched",
				  row->by_size ? "size" : "handle", "while_working",
				  row->while_working, "owner", process_of(row->owner), "opener",
				  process_of(row->opener), "allocated_at",
				  gm_json_string(row->allocated_at), "freed_at",
				  gm_json_string(row->freed_at), "opened_at",
				  gm_json_string(row->opened_at)));
	}
	return list;
}

static json_t *job_object(const struct gm_job *job, const struct gm_json_bound *bound)
{
	json_t *sums = json_array(), *object;

	for (unsigned i = 0; i < job->totals_count; i++)
		json_array_append_new(sums, job_total(&job->totals[i]));
	object = json_pack("{s:i, s:o, s:o, s:o}", "ranks", (int)job->ranks, "totals", sums,
			   "findings", job_findings(job), "freed_shares", freed_shares(job));
	if (bound)
		gm_json_bound(bound, "job", object);
	return object;
}

static void put_runs(struct gm_json_out *out, const struct gm_job *job)
{
	gm_json_put_name(out, "runs");
	gm_json_put_text(out, "[");
	for (unsigned i = 0; i < job->count; i++) {
		if (i)
			gm_json_put_text(out, ",");
		gm_json_put_doc(out, job->docs[i], NULL, NULL);
	}
	gm_json_put_text(out, "]");
}

/* A list with a value for each file stays whole; those values are bounded. */
static void bound_files(const struct gm_json_bound *bound, const char *key, json_t *value)
{
	json_t *of_file;
	size_t i;

	if (!json_is_array(value))
		gm_json_bound(bound, key, value);
	json_array_foreach(value, i, of_file)
		gm_json_bound(bound, key, of_file);
}

void gm_json_put_job(struct gm_json_out *out, struct gm_job *job, const char *more, json_t *value)
{
	if (!job->several) {
		gm_json_put_doc(out, job->docs[0], more, value);
		return;
	}
	gm_json_put_text(out, "{\"schema_version\": 1");
	if (out->bound && value)
		bound_files(out->bound, more, value);
	for (size_t i = 0; i < KEYS; i++) {
		const char *key = keys[i].key;

		if (!strcmp(key, "runs"))
			put_runs(out, job);
		else if (!strcmp(key, "job"))
			gm_json_put_key(out, key, job_object(job, out->bound));
		else if (!strcmp(key, "gates"))
			gm_json_put_key(out, key,
					gm_json_gate_list(NULL, job->gates, job->gates_count));
		else
			gm_json_put_key(out, key, nothing(i));
	}
	if (more)
		gm_json_put_key(out, more, value);
	gm_json_put_text(out, "}");
}

static int finish(struct gm_json_out *out, FILE *file)
{
	gm_json_put_text(out, "\n");
	if (gm_json_out_end(out) && fflush(file) == 0)
		return 0;
	return errno ? -errno : -EIO;
}

/* Writes the job, or the document if there is no job. */
static int write_all(struct gm_json_out *out, struct gm_job *job, struct gm_doc *doc,
		     const char *more, json_t *value)
{
	struct gm_json_bound bound = {0};
	int rc;

	if (doc && doc->options.top_given) {
		bound = (struct gm_json_bound){doc->options.top, json_object()};
		out->bound = &bound;
	}
	if (job)
		gm_json_put_job(out, job, more, value);
	else
		gm_json_put_doc(out, doc, more, value);
	rc = finish(out, out->data);
	json_decref(bound.named);
	return rc;
}

int gm_json_write_doc(struct gm_doc *doc, const char *more, json_t *value, FILE *file)
{
	struct gm_json_out out = {.write = gm_json_to_file, .data = file};

	return write_all(&out, NULL, doc, more, value);
}

int gm_json_write_line(struct gm_doc *doc, FILE *file)
{
	struct gm_json_out out = {.write = gm_json_to_file, .data = file, .one_line = true};

	return write_all(&out, NULL, doc, NULL, NULL);
}

int gm_json_write_job(struct gm_job *job, const char *more, json_t *value, FILE *file)
{
	struct gm_json_out out = {.write = gm_json_to_file, .data = file};

	return write_all(&out, job, job->count ? job->docs[0] : NULL, more, value);
}
