/*
 * export: writes one of the formats of the table in render/export/export.c.
 */
#include "cli.h"
#include "output.h"
#include "report/support/progress.h"
#include "report/history/events.h"
#include "report/render/export/export.h"
#include "report/support/numbering.h"
#include "report/symbols/symbolize.h"
#include "report/doc/options.h"
#include "report/open/open.h"
#include "report/job/job_open.h"
#include "report/support/print.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Says which formats there are; GM_EXIT_USAGE. */
static int refuse(const struct gm_cli *cli)
{
	char names[256] = "";

	for (unsigned i = 0; i < gm_export_formats_count; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 i ? ", " : "", gm_export_formats[i].name);
	return gm_usage_error(
		"%s; --format is one of %s",
		cli->format ? "that format is not known" : "export needs --format FORMAT", names);
}

/* Says which part of a complete history is missing from the export. */
static void say_gap(struct gm_doc *doc)
{
	const char *gap = gm_history_gap(doc);

	if (gap)
		gm_cli_complain(gap);
}

static int write_to_file(struct gm_cli *cli, const struct gm_export_format *format,
			 struct gm_job *job)
{
	struct gm_output output;
	int rc;

	if (!gm_output_begin(&output, cli, cli->out_path))
		return GM_EXIT_USAGE;
	rc = job->count > 1 ? format->write_job(job, &cli->options, output.file)
			    : format->write(job->docs[0], &cli->options, output.file);
	for (unsigned i = 0; i < job->count; i++)
		say_gap(job->docs[i]);
	return gm_output_end(&output, rc != 0) ? GM_EXIT_FINE : GM_EXIT_USAGE;
}

/*
 * Returns the path of a process's own output: OUT with the rank before its suffix,
 * train.rank3.pickle, or with the pid where there is no rank; a name that is taken already, as by
 * an earlier attempt of the rank, gets a number.
 */
static const char *own_path(struct gm_zone *zone, struct gm_numbering *taken, const char *out,
			    const struct gm_header *header)
{
	const char *slash = strrchr(out, '/'), *name = slash ? slash + 1 : out;
	const char *dot = strrchr(name, '.');
	int stem = (int)(dot && dot > name ? (size_t)(dot - out) : strlen(out));
	bool ranked = header->rank >= 0, added = false;
	const char *path = NULL;

	for (unsigned number = 1; !added; number++) {
		char more[16] = "";

		if (number > 1)
			snprintf(more, sizeof(more), "-%u", number);
		path = gm_zone_printf(zone, "%.*s.%s%u%s%s", stem, out, ranked ? "rank" : "pid",
				      ranked ? (uint32_t)header->rank : header->pid, more,
				      out + stem);
		gm_number_of(taken, path, strlen(path), &added);
	}
	return path;
}

/* Adds one process to a file that holds several, by a transaction; false after a sentence. */
static bool add_one(struct gm_cli *cli, const struct gm_export_format *format, struct gm_doc *doc,
		    const struct gm_options *options, const char *path)
{
	bool made;
	char error[1024];

	if (!gm_cli_may_write(cli, path))
		return false;
	made = gm_output_prepare(cli, path);
	if (format->write_path(doc, options, path, error, sizeof(error)) == 0)
		return true;
	if (made)
		unlink(path);
	gm_usage_error("%s", error);
	return false;
}

/* Writes one process to one file; false after a sentence. */
static bool write_one(struct gm_cli *cli, const struct gm_export_format *format,
		      struct gm_doc *doc, const struct gm_options *options, const char *path)
{
	struct gm_output output;
	char error[1024] = "";
	int rc;

	if (format->adds)
		return add_one(cli, format, doc, options, path);
	if (!gm_output_begin(&output, cli, path))
		return false;
	if (!format->write_path)
		return gm_output_end(&output, format->write(doc, options, output.file) != 0);
	rc = format->write_path(doc, options, output.temporary ? output.temporary : path, error,
				sizeof(error));
	if (rc)
		gm_cli_complain(error);
	return gm_output_end(&output, rc != 0);
}

/* The state of exporting the files of a command line, one after the other. */
struct outputs {
	struct gm_cli *cli;
	const struct gm_export_format *format;
	struct gm_options options;
	struct gm_zone zone;
	struct gm_numbering taken; /* names of outputs, where each process has its own */
	bool own;
	unsigned written;
	int rc;
};

static void write_next(struct outputs *outputs, const char *input)
{
	struct gm_cli *cli = outputs->cli;
	const char *path = cli->out_path;
	char error[1024];
	struct gm_doc *doc = gm_doc_open(input, &outputs->options, error, sizeof(error));

	if (!doc) {
		gm_cli_complain(error);
		cli->input_failed = true;
		return;
	}
	if (outputs->own)
		path = own_path(&outputs->zone, &outputs->taken, path, doc->header);
	if (!write_one(cli, outputs->format, doc, &outputs->options, path)) {
		outputs->rc = GM_EXIT_USAGE;
	} else {
		outputs->written++;
		if (outputs->own && !cli->options.quiet)
			gm_printf(stdout, "%s: %s\n", path, input);
	}
	say_gap(doc);
	gm_doc_close(doc);
}

/* Writes one file after the other, so that a week of them needs the memory of one. */
static int write_each(struct gm_cli *cli, const struct gm_export_format *format)
{
	struct outputs outputs = {.cli = cli,
				  .format = format,
				  .options = cli->options,
				  .own = cli->words_count > 1 && !format->adds};

	if (outputs.options.symbols)
		outputs.options.shared_symbols =
			gm_symbols_new(&outputs.zone, outputs.options.symbol_cache);
	/* An output that fails does not stop the others where each file has its own. */
	for (unsigned i = 0; i < cli->words_count && (outputs.own || !outputs.rc); i++) {
		gm_progress("writing runs", i, cli->words_count);
		write_next(&outputs, cli->words[i]);
	}
	gm_progress_end();
	gm_symbols_free(outputs.options.shared_symbols);
	gm_numbering_free(&outputs.taken);
	gm_zone_free(&outputs.zone);
	if (outputs.rc)
		return outputs.rc;
	return outputs.written ? GM_EXIT_FINE : GM_EXIT_INPUT;
}

int gm_cmd_export(struct gm_cli *cli)
{
	const struct gm_export_format *format = cli->format ? gm_export_find(cli->format) : NULL;
	bool to_stdout = !cli->out_path || strcmp(cli->out_path, "-") == 0;
	struct gm_job *job;
	int rc;

	if (!format)
		return refuse(cli);
	if (format->write_path && to_stdout)
		return gm_usage_error("--format %s needs -o OUT", format->name);
	if (format->binary && to_stdout && isatty(STDOUT_FILENO))
		return gm_usage_error(
			"--format %s is binary and is not written to a terminal: name "
			"a file with -o OUT, or redirect the output",
			format->name);
	cli->options.needs_blocks = format->needs_blocks;
	cli->options.keep_image = format->write_path;
	gm_cli_find_inputs(cli);
	if (cli->words_count > 1 && !format->write_path && !format->write_job && to_stdout)
		return gm_usage_error(
			"--format %s holds one process: with -o OUT each of the %u files "
			"becomes one of its own, or name one file",
			format->name, cli->words_count);
	if (format->write_path || (cli->words_count > 1 && !format->write_job))
		return write_each(cli, format);
	cli->options.keep_records = true;
	job = gm_cli_open(cli);
	if (!job)
		return GM_EXIT_INPUT;
	rc = write_to_file(cli, format, job);
	gm_job_close(job);
	return rc;
}
