/*
 * diff OLD NEW: totals and sites of two runs side by side.
 */
#include "cli.h"
#include "report/render/check/json_changes.h"
#include "report/render/check/text_check.h"
#include "report/render/json/json.h"
#include "report/job/job_open.h"

/* The files that one of the two words names. */
static struct gm_job *open_side(struct gm_cli *cli, char *word)
{
	struct gm_inputs inputs = gm_inputs_find(&word, 1, gm_cli_complain);
	struct gm_job *job = NULL;

	if (inputs.count)
		job = gm_job_open(inputs.paths, inputs.count, &cli->options, gm_cli_complain);
	if (!job || job->count < inputs.count)
		cli->input_failed = true;
	gm_inputs_free(&inputs);
	return job;
}

/* Returns the name of a side: its file, or the directory. */
static const char *name_of(const struct gm_job *job, const char *word)
{
	return job->count == 1 ? job->docs[0]->path : word;
}

/*
 * The process of the other job that a row is held against: of the same rank, else by position. Two
 * files are held against each other, whatever their ranks.
 */
static struct gm_doc *partner(const struct gm_job *job, const struct gm_doc *doc, unsigned position,
			      bool alone)
{
	if (job->count == 1 && alone)
		return job->docs[0];
	for (unsigned i = 0; i < job->count && doc->header->rank >= 0; i++)
		if (job->docs[i]->header->rank == doc->header->rank && !job->docs[i]->superseded)
			return job->docs[i];
	return doc->header->rank < 0 && position < job->count ? job->docs[position] : NULL;
}

/* Adds a row with a device's figures after and before; NULL: the device was not used. */
static void add_row(struct gm_table *table, int device, const struct gm_level_record *now,
		    const struct gm_level_record *before)
{
	static const struct gm_level_record nothing;
	char text[GM_FORMAT_BYTES], name[24];

	now = now ? now : &nothing;
	before = before ? before : &nothing;
	gm_table_cell(table, "%s", gm_device_name(name, device));
	gm_table_size(table, now->current_bytes);
	gm_table_size(table, before->current_bytes);
	gm_table_cell(table, "%s",
		      gm_format_change(text, before->current_bytes, now->current_bytes));
	gm_table_size(table, now->peak_bytes);
	gm_table_size(table, before->peak_bytes);
	gm_table_cell(table, "%s", gm_format_change(text, before->peak_bytes, now->peak_bytes));
}

/* A row for each device of a process, and for the host; then those that it used before only. */
static void add_rows(struct gm_table *table, const struct gm_doc *old_doc,
		     const struct gm_doc *new_doc, bool ranks)
{
	for (unsigned i = 0; i < new_doc->levels_count; i++) {
		const struct gm_level_record *now = &new_doc->levels[i];

		if (now->level != GM_LEVEL_DRIVER)
			continue;
		if (ranks)
			gm_table_cell(table, "%d", new_doc->header->rank);
		add_row(table, now->device, now,
			old_doc ? gm_doc_level(old_doc, now->device, now->level) : NULL);
	}
	for (unsigned i = 0; old_doc && i < old_doc->levels_count; i++) {
		const struct gm_level_record *before = &old_doc->levels[i];

		if (before->level != GM_LEVEL_DRIVER ||
		    gm_doc_level(new_doc, before->device, before->level))
			continue;
		if (ranks)
			gm_table_cell(table, "%d", new_doc->header->rank);
		add_row(table, before->device, NULL, before);
	}
}

static void print_totals(struct gm_out *out, const struct gm_job *old_job,
			 const struct gm_job *new_job)
{
	static const char *const titles[] = {"rank", "<where", "live",   "before", "change",
					     "peak", "before", "change",  NULL};
	bool ranks = new_job->docs[new_job->count - 1]->header->rank >= 0 && new_job->count > 1;
	struct gm_table table;

	gm_table_begin(&table, ranks ? titles : titles + 1);
	for (unsigned i = 0; i < new_job->count; i++)
		if (!new_job->docs[i]->superseded)
			add_rows(&table, partner(old_job, new_job->docs[i], i, new_job->count == 1),
				 new_job->docs[i], ranks);
	gm_table_end(out, &table);
}

static void show(struct gm_cli *cli, struct gm_job *old_job, struct gm_job *new_job)
{
	struct gm_out out = gm_cli_out(cli);
	struct gm_change *changes;
	unsigned count;

	changes = gm_compare_jobs(old_job, new_job, &count);
	if (!cli->options.json) {
		print_totals(&out, old_job, new_job);
		gm_text_changes(&out, changes, count);
		gm_text_measures(&out, changes, count, false);
		return;
	}
	gm_json_write_job(new_job, "diff",
			  gm_json_changes(name_of(old_job, cli->words[0]),
					  name_of(new_job, cli->words[1]), changes, count),
			  stdout);
}

int gm_cmd_diff(struct gm_cli *cli)
{
	struct gm_job *old_job, *new_job;

	if (cli->words_count != 2)
		return gm_usage_error("diff compares two files, or the directories of two jobs: "
				      "gpumem-report diff OLD NEW");
	old_job = open_side(cli, cli->words[0]);
	new_job = open_side(cli, cli->words[1]);
	if (old_job && new_job)
		show(cli, old_job, new_job);
	gm_job_close(old_job);
	gm_job_close(new_job);
	return old_job && new_job ? GM_EXIT_FINE : GM_EXIT_INPUT;
}
