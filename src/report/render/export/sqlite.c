/*
 * An SQLite database of one or many runs: the tables that docs/sql.md describes. A run's rows carry
 * its number, so that runs add up in one file; exporting the same run again replaces it.
 */
#include "report/doc/enum_names.h"
#include "report/doc/options.h"
#include "report/history/events.h"
#include "report/render/export/internal.h"
#include "report/stacks/labels.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA_VERSION 3

static const char schema[] =
	"CREATE TABLE IF NOT EXISTS runs(run INTEGER PRIMARY KEY, host TEXT, pid INTEGER, "
	"started_at TEXT, program TEXT, command TEXT, rank INTEGER, world_size INTEGER, "
	"end TEXT, duration_s REAL, complete INTEGER, path TEXT, job TEXT, attempt TEXT, "
	"local_rank INTEGER, revision TEXT, "
	"UNIQUE(host, pid, started_at));"
	"CREATE TABLE IF NOT EXISTS devices(run INTEGER, device INTEGER, name TEXT, uuid TEXT, "
	"total_bytes INTEGER, PRIMARY KEY(run, device));"
	"CREATE TABLE IF NOT EXISTS totals(run INTEGER, device INTEGER, level TEXT, "
	"current_bytes INTEGER, current_count INTEGER, peak_bytes INTEGER, peak_at_s REAL);"
	"CREATE TABLE IF NOT EXISTS usage(run INTEGER, device INTEGER, kind TEXT, "
	"current_bytes INTEGER, current_count INTEGER, peak_bytes INTEGER, "
	"allocated_bytes INTEGER, freed_bytes INTEGER, allocations INTEGER, frees INTEGER, "
	"failures INTEGER);"
	"CREATE TABLE IF NOT EXISTS sites(run INTEGER, site TEXT, level TEXT, kind TEXT, "
	"device INTEGER, verdict TEXT, live_bytes INTEGER, live_count INTEGER, "
	"peak_bytes INTEGER, bytes_at_peak INTEGER, allocated_bytes INTEGER, "
	"allocations INTEGER, frees INTEGER, first_s REAL, last_s REAL, library TEXT, "
	"category TEXT, phase TEXT, place TEXT, live_error_bytes INTEGER, "
	"at_peak_error_bytes INTEGER, allocated_error_bytes INTEGER, PRIMARY KEY(run, site));"
	"CREATE TABLE IF NOT EXISTS frames(run INTEGER, site TEXT, depth INTEGER, kind TEXT, "
	"function TEXT, file TEXT, line INTEGER, module TEXT, PRIMARY KEY(run, site, depth));"
	"CREATE TABLE IF NOT EXISTS blocks(run INTEGER, address INTEGER, bytes INTEGER, "
	"level TEXT, kind TEXT, device INTEGER, site TEXT, time_s REAL, state TEXT);"
	"CREATE TABLE IF NOT EXISTS events(run INTEGER, number INTEGER, time_s REAL, op TEXT, "
	"level TEXT, kind TEXT, device INTEGER, address INTEGER, bytes INTEGER, site TEXT, "
	"thread INTEGER, error INTEGER, PRIMARY KEY(run, number));"
	"CREATE TABLE IF NOT EXISTS marks(run INTEGER, name TEXT, time_s REAL, "
	"current_bytes INTEGER, torch_bytes INTEGER);"
	"CREATE TABLE IF NOT EXISTS ranges(run INTEGER, number INTEGER, name TEXT, path TEXT, "
	"source TEXT, device INTEGER, parent INTEGER, grouped_in INTEGER, times INTEGER, "
	"lowest_peak_bytes INTEGER, median_peak_bytes INTEGER, peak_bytes INTEGER, "
	"peak_name TEXT, peak_start_s REAL, peak_end_s REAL, retained_bytes INTEGER, "
	"median_retained_bytes INTEGER, most_retained_bytes INTEGER, most_retained_name TEXT, "
	"most_retained_start_s REAL, most_retained_end_s REAL, live_bytes INTEGER, "
	"PRIMARY KEY(run, number));"
	"CREATE TABLE IF NOT EXISTS timeline(run INTEGER, device INTEGER, level TEXT, series TEXT, "
	"start_s REAL, width_s REAL, min_bytes INTEGER, max_bytes INTEGER, last_bytes INTEGER);"
	"CREATE TABLE IF NOT EXISTS ooms(run INTEGER, time_s REAL, device INTEGER, "
	"requested_bytes INTEGER, free_bytes INTEGER, tracked_bytes INTEGER, verdict TEXT, "
	"phase TEXT, place TEXT);"
	"CREATE TABLE IF NOT EXISTS findings(run INTEGER, id TEXT, severity TEXT, device INTEGER, "
	"bytes INTEGER, site TEXT, title TEXT, evidence TEXT);";

static const char *const tables[] = {"devices", "totals",   "usage",  "sites",
				     "frames",	"blocks",   "events", "marks",
				     "ranges",	"timeline", "ooms",   "findings"};

struct database {
	sqlite3 *handle;
	sqlite3_stmt *statement; /* being filled */
	const char *sql;	 /* its text: one of the literals below */
	int column;
	sqlite3_int64 run;
	bool failed;
};

static void execute(struct database *db, const char *sql)
{
	if (!db->failed && sqlite3_exec(db->handle, sql, NULL, NULL, NULL) != SQLITE_OK)
		db->failed = true;
}

/* Begins a row; the same literal again reuses its statement. The run's number is filled first. */
static void row(struct database *db, const char *sql)
{
	if (db->failed)
		return;
	if (db->sql != sql) {
		sqlite3_finalize(db->statement);
		db->statement = NULL;
		db->sql = sql;
		db->failed =
			sqlite3_prepare_v2(db->handle, sql, -1, &db->statement, NULL) != SQLITE_OK;
	}
	if (db->failed)
		return;
	sqlite3_reset(db->statement);
	sqlite3_clear_bindings(db->statement);
	db->column = 1;
	if (db->run)
		sqlite3_bind_int64(db->statement, db->column++, db->run);
}

static void row_end(struct database *db)
{
	if (!db->failed)
		db->failed = sqlite3_step(db->statement) != SQLITE_DONE;
	if (db->statement)
		sqlite3_reset(db->statement);
}

static void text(struct database *db, const char *value)
{
	if (!db->failed && value)
		sqlite3_bind_text(db->statement, db->column, value, -1, SQLITE_TRANSIENT);
	db->column++;
}

static void number(struct database *db, uint64_t value)
{
	if (!db->failed && value != GM_NO_BYTES)
		sqlite3_bind_int64(db->statement, db->column, (sqlite3_int64)value);
	db->column++;
}

/* NULL for the host, as `device` is null in the document. */
static void device_number(struct database *db, int device)
{
	number(db, device < 0 ? GM_NO_BYTES : (uint64_t)device);
}

static void real(struct database *db, double value)
{
	if (!db->failed && !isnan(value))
		sqlite3_bind_double(db->statement, db->column, value);
	db->column++;
}

static void seconds(struct database *db, uint64_t ns)
{
	real(db, ns == GM_NO_BYTES ? NAN : (double)ns / 1e9);
}

static const char *site_id(const struct gm_doc *doc, uint32_t site)
{
	return site < doc->sites_count ? doc->sites[site].id : NULL;
}

static const char *command_text(struct gm_doc *doc)
{
	const char *joined = "";

	for (unsigned i = 0; i < doc->command_count; i++)
		joined = gm_doc_printf(doc, "%s%s%s", joined, i ? " " : "", doc->command[i]);
	return joined;
}

/* Takes the run's number: a new one, or that of the same run after its rows are gone. */
static void take_run(struct database *db, struct gm_doc *doc)
{
	const struct gm_header *header = doc->header;

	row(db, "SELECT run FROM runs WHERE host IS ? AND pid IS ? AND started_at IS ?");
	text(db, doc->host);
	number(db, header->pid);
	text(db, doc->started_at);
	if (!db->failed && sqlite3_step(db->statement) == SQLITE_ROW)
		db->run = sqlite3_column_int64(db->statement, 0);
	for (size_t i = 0; db->run && i < sizeof(tables) / sizeof(tables[0]); i++)
		execute(db, gm_doc_printf(doc, "DELETE FROM %s WHERE run = %lld", tables[i],
					  (long long)db->run));
	if (db->run)
		execute(db, gm_doc_printf(doc, "DELETE FROM runs WHERE run = %lld",
					  (long long)db->run));
	row(db, db->run ? "INSERT INTO runs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
			: "INSERT INTO runs VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
	text(db, doc->host);
	number(db, header->pid);
	text(db, doc->started_at);
	text(db, doc->program);
	text(db, command_text(doc));
	number(db, header->rank < 0 ? GM_NO_BYTES : (uint64_t)header->rank);
	number(db, header->world_size < 0 ? GM_NO_BYTES : (uint64_t)header->world_size);
	text(db, doc->end);
	real(db, doc->duration_s);
	number(db, doc->complete);
	text(db, doc->path);
	text(db, doc->job);
	text(db, doc->attempt);
	number(db, header->local_rank < 0 ? GM_NO_BYTES : (uint64_t)header->local_rank);
	text(db, doc->revision);
	row_end(db);
	if (!db->failed && !db->run)
		db->run = sqlite3_last_insert_rowid(db->handle);
}

static void fill_devices(struct database *db, const struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->devices_count; i++) {
		row(db, "INSERT INTO devices VALUES(?,?,?,?,?)");
		device_number(db, doc->devices[i].index);
		text(db, doc->devices[i].name);
		text(db, doc->devices[i].uuid);
		number(db, doc->devices[i].record.total_bytes);
		row_end(db);
	}
}

static void fill_totals(struct database *db, const struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->levels_count; i++) {
		const struct gm_level_record *level = &doc->levels[i];

		row(db, "INSERT INTO totals VALUES(?,?,?,?,?,?,?)");
		device_number(db, level->device);
		text(db, gm_level_name(level->level));
		number(db, level->current_bytes);
		number(db, level->current_count);
		number(db, level->peak_bytes);
		seconds(db, level->peak_at_ns);
		row_end(db);
	}
	for (unsigned i = 0; i < doc->usage_count; i++) {
		const struct gm_usage_record *usage = &doc->usage[i];

		row(db, "INSERT INTO usage VALUES(?,?,?,?,?,?,?,?,?,?,?)");
		device_number(db, usage->device);
		text(db, gm_kind_name(usage->kind));
		number(db, usage->current_bytes);
		number(db, usage->current_count);
		number(db, usage->peak_bytes);
		number(db, usage->allocated_bytes);
		number(db, usage->freed_bytes);
		number(db, usage->allocations);
		number(db, usage->frees);
		number(db, usage->failures);
		row_end(db);
	}
}

static void fill_stack(struct database *db, const struct gm_site *site)
{
	for (unsigned i = 0; site->stack && i < site->stack->count; i++) {
		const struct gm_frame *frame = gm_stack_frame(site->stack, i);

		row(db, "INSERT INTO frames VALUES(?,?,?,?,?,?,?,?)");
		text(db, site->id);
		number(db, i);
		text(db, frame->python ? "python" : "native");
		text(db, frame->function);
		text(db, frame->file);
		number(db, frame->line ? frame->line : GM_NO_BYTES);
		text(db, frame->module);
		row_end(db);
	}
}

static void fill_site(struct database *db, struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_site_errors errors = gm_site_errors(doc, site);
	const struct gm_site_figures *record = &site->record;

	row(db, "INSERT INTO sites VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
	text(db, site->id);
	text(db, gm_level_name(record->level));
	text(db, gm_kind_name(record->kind));
	device_number(db, record->device);
	text(db, gm_verdict_name(site->verdict));
	number(db, record->live_bytes);
	number(db, record->live_count);
	number(db, record->peak_bytes);
	number(db, record->bytes_at_peak);
	number(db, record->allocated_bytes);
	number(db, record->allocations);
	number(db, record->frees);
	seconds(db, record->first_ns);
	seconds(db, record->last_ns);
	text(db, site->library);
	text(db, site->category);
	text(db, site->phase);
	text(db, gm_stack_label(doc, site->stack));
	number(db, errors.live_bytes);
	number(db, errors.at_peak_bytes);
	number(db, errors.allocated_bytes);
	row_end(db);
}

static void fill_sites(struct database *db, struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->sites_count; i++)
		if (!doc->sites[i].hidden && doc->sites[i].record.allocations)
			fill_site(db, doc, &doc->sites[i]);
	for (unsigned i = 0; i < doc->sites_count; i++)
		if (!doc->sites[i].hidden && doc->sites[i].record.allocations)
			fill_stack(db, &doc->sites[i]);
}

static void fill_blocks(struct database *db, const struct gm_doc *doc)
{
	static const char *const states[] = {"empty", "live", "freeing", "pending"};

	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *block = &copy;

		row(db, "INSERT INTO blocks VALUES(?,?,?,?,?,?,?,?,?)");
		number(db, block->key);
		number(db, block->bytes);
		text(db, gm_level_name(block->level));
		text(db, gm_kind_name(block->kind));
		device_number(db, block->device);
		text(db, site_id(doc, block->site));
		seconds(db, block->time_ns);
		text(db, states[block->state]);
		row_end(db);
	}
}

struct event_rows {
	struct database *db;
	struct gm_doc *doc;
	uint64_t number;
};

static void fill_event(const struct gm_event_record *event, void *data)
{
	static const char *const ops[] = {"alloc", "free",	    "alloc_failed", "free_failed",
					  "mark",  "implicit_free", "oom",	    "context",
					  "map",   "unmap",	    "launch"};
	struct event_rows *rows = data;
	struct database *db = rows->db;

	row(db, "INSERT INTO events VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
	number(db, rows->number++);
	seconds(db, event->time_ns);
	text(db, ops[event->op]);
	text(db, gm_level_name(event->level));
	text(db, gm_kind_name(event->kind));
	device_number(db, event->device);
	number(db, event->key);
	number(db, event->bytes);
	text(db, site_id(rows->doc, event->site));
	number(db, event->thread);
	number(db, (uint64_t)event->error);
	row_end(db);
}

static void fill_events(struct database *db, struct gm_doc *doc)
{
	struct event_rows rows = {db, doc, 0};

	gm_history_each(doc, fill_event, &rows);
}

static void fill_marks(struct database *db, const struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->marks_count; i++) {
		row(db, "INSERT INTO marks VALUES(?,?,?,?,?)");
		text(db, doc->marks[i].name);
		seconds(db, doc->marks[i].record.time_ns);
		number(db, doc->marks[i].record.current_bytes);
		number(db, doc->marks[i].record.torch_bytes);
		row_end(db);
	}
}

static void index_number(struct database *db, uint32_t index)
{
	number(db, index == GM_NONE ? GM_NO_BYTES : index);
}

static void signed_number(struct database *db, int64_t value)
{
	if (!db->failed)
		sqlite3_bind_int64(db->statement, db->column, value);
	db->column++;
}

/* When it was, of an instance that was measured. */
static void instance(struct database *db, const char *name, const struct gm_range_instance *of,
		     bool measured)
{
	text(db, measured ? name : NULL);
	seconds(db, measured ? of->start_ns : GM_NO_BYTES);
	seconds(db, measured ? of->end_ns : GM_NO_BYTES);
}

static void fill_ranges(struct database *db, const struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->ranges_count; i++) {
		const struct gm_named_range *range = &doc->ranges[i];
		const struct gm_range_record *record = &range->record;
		bool measured = record->measured != 0;

		if (range->hidden)
			continue;
		row(db, "INSERT INTO ranges VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
		number(db, i);
		text(db, range->name);
		text(db, range->path);
		text(db, gm_range_source_name(record->source));
		device_number(db, record->device);
		index_number(db, record->parent);
		index_number(db, record->group);
		number(db, record->closed);
		number(db, measured ? record->lowest_peak_bytes : GM_NO_BYTES);
		number(db, range->median_peak_bytes);
		number(db, measured ? record->highest.peak_bytes : GM_NO_BYTES);
		instance(db, range->highest_name, &record->highest, measured);
		signed_number(db, record->retained_bytes);
		signed_number(db, range->median_retained_bytes);
		signed_number(db, record->most_retained.retained_bytes);
		instance(db, range->most_retained_name, &record->most_retained, measured);
		number(db, range->work_bytes);
		row_end(db);
	}
}

static void fill_timeline(struct database *db, const struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->timeline_count; i++) {
		const struct gm_timeline_record *line = &doc->timeline[i];

		for (unsigned p = 0; p < line->points; p++) {
			row(db, "INSERT INTO timeline VALUES(?,?,?,?,?,?,?,?,?)");
			device_number(db, line->device);
			text(db, gm_series_level(line->series));
			text(db, gm_series_name(line->series));
			seconds(db, p * line->width_ns);
			seconds(db, line->width_ns);
			number(db, line->min_bytes[p]);
			number(db, line->max_bytes[p]);
			number(db, line->last_bytes[p]);
			row_end(db);
		}
	}
}

static void fill_judgements(struct database *db, struct gm_doc *doc)
{
	for (unsigned i = 0; i < doc->ooms_count; i++) {
		const struct gm_oom *oom = &doc->ooms[i];

		row(db, "INSERT INTO ooms VALUES(?,?,?,?,?,?,?,?,?)");
		seconds(db, oom->record.time_ns);
		device_number(db, oom->record.device);
		number(db, oom->record.requested_bytes);
		number(db, oom->record.free_bytes);
		number(db, oom->record.tracked_bytes);
		text(db, oom->verdict);
		text(db, oom->phase);
		text(db, gm_stack_label(doc, oom->stack));
		row_end(db);
	}
	for (unsigned i = 0; i < doc->findings_count; i++) {
		const struct gm_finding *finding = &doc->findings[i];

		row(db, "INSERT INTO findings VALUES(?,?,?,?,?,?,?,?)");
		text(db, finding->id);
		text(db, gm_severity_name(finding->severity));
		device_number(db, finding->device);
		number(db, finding->bytes);
		text(db, site_id(doc, finding->site));
		text(db, finding->title);
		text(db, finding->evidence);
		row_end(db);
	}
}

/* The version of the tables that are there; 0 if there are none. */
static int version_of(struct database *db)
{
	int version = 0;

	row(db, "PRAGMA user_version");
	if (!db->failed && sqlite3_step(db->statement) == SQLITE_ROW)
		version = sqlite3_column_int(db->statement, 0);
	if (db->statement)
		sqlite3_reset(db->statement);
	return version;
}

/* The changes that make a database of version 1 one of this version. */
static const char since_1[] = "ALTER TABLE runs ADD COLUMN job TEXT;"
			      "ALTER TABLE runs ADD COLUMN attempt TEXT;"
			      "ALTER TABLE runs ADD COLUMN local_rank INTEGER;"
			      "ALTER TABLE runs ADD COLUMN revision TEXT;";

static const char since_2[] = "ALTER TABLE sites ADD COLUMN live_error_bytes INTEGER;"
			      "ALTER TABLE sites ADD COLUMN at_peak_error_bytes INTEGER;"
			      "ALTER TABLE sites ADD COLUMN allocated_error_bytes INTEGER;";

static void fill(struct database *db, struct gm_doc *doc, int version)
{
	if (version == 1)
		execute(db, since_1);
	if (version == 1 || version == 2)
		execute(db, since_2);
	execute(db, schema);
	execute(db, gm_doc_printf(doc, "PRAGMA user_version = %d", SCHEMA_VERSION));
	take_run(db, doc);
	fill_devices(db, doc);
	fill_totals(db, doc);
	fill_sites(db, doc);
	fill_blocks(db, doc);
	fill_events(db, doc);
	fill_marks(db, doc);
	fill_ranges(db, doc);
	fill_timeline(db, doc);
	fill_judgements(db, doc);
}

int gm_export_sqlite(struct gm_doc *doc, const struct gm_options *options, const char *path,
		     char *error, size_t error_bytes)
{
	struct database db = {0};
	bool too_new;
	int version;

	(void)options;
	db.failed = sqlite3_open(path, &db.handle) != SQLITE_OK;
	if (db.handle)
		sqlite3_busy_timeout(db.handle, 60000); /* several ranks write at the same time */
	execute(&db, "BEGIN IMMEDIATE");
	version = version_of(&db);
	/* Tables of a later version would be filled wrongly. */
	too_new = !db.failed && version > SCHEMA_VERSION;
	if (!too_new)
		fill(&db, doc, version);
	sqlite3_finalize(db.statement);
	if (!too_new)
		execute(&db, "COMMIT");
	if (too_new)
		snprintf(error, error_bytes,
			 "%s has tables of a newer gpumem-report; write to another file", path);
	else if (db.failed)
		snprintf(error, error_bytes, "%s: %s", path,
			 db.handle ? sqlite3_errmsg(db.handle) : "out of memory");
	sqlite3_close(db.handle); /* a transaction that was not committed is undone */
	return db.failed ? -EIO : too_new ? -EINVAL : 0;
}
