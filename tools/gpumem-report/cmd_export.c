/*
 * export: writes one of the formats of the table in render/export.c.
 */
#include "cli.h"
#include "report/progress.h"
#include "report/history.h"
#include "report/render/export.h"
#include "report/symbolize.h"
#include <string.h>

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

/* What of a complete history did not get into the export. */
static void say_gap(struct gm_doc *doc)
{
	const char *gap = gm_history_gap(doc);

	if (gap)
		gm_cli_complain(gap);
}

static int write_to_file(struct gm_cli *cli, const struct gm_export_format *format,
			 struct gm_job *job)
{
	FILE *file = gm_cli_output(cli, cli->out_path);
	int rc;

	if (!file)
		return GM_EXIT_USAGE;
	rc = job->count > 1 ? format->write_job(job, &cli->options, file)
			    : format->write(job->docs[0], &cli->options, file);
	for (unsigned i = 0; i < job->count; i++)
		say_gap(job->docs[i]);
	if (file != stdout && fclose(file) != 0)
		rc = -1;
	if (rc && file != stdout)
		return gm_usage_error("%s could not be written whole", cli->out_path);
	return rc ? GM_EXIT_USAGE : GM_EXIT_FINE; /* of standard output main says it */
}

/* One file after the other, so that a week of them needs the memory of one. */
static int write_in_place(struct gm_cli *cli, const struct gm_export_format *format)
{
	struct gm_options options = cli->options;
	struct gm_arena arena = {0};
	char error[1024];
	unsigned written = 0;
	int rc = 0;

	if (options.symbols)
		options.shared_symbols = gm_symbols_new(&arena, options.symbol_cache);
	for (unsigned i = 0; i < cli->words_count && !rc; i++) {
		struct gm_doc *doc = gm_doc_open(cli->words[i], &options, error, sizeof(error));

		gm_progress("writing runs", i, cli->words_count);
		if (!doc) {
			gm_cli_complain(error);
			cli->input_failed = true;
			continue;
		}
		rc = format->write_path(doc, &options, cli->out_path, error, sizeof(error));
		say_gap(doc);
		gm_doc_free(doc);
		written++;
	}
	gm_progress_end();
	gm_symbols_free(options.shared_symbols);
	gm_arena_free(&arena);
	if (rc)
		return gm_usage_error("%s", error);
	return written ? GM_EXIT_FINE : GM_EXIT_INPUT;
}

static int refuse_several(const struct gm_export_format *format, unsigned files)
{
	return gm_usage_error("--format %s holds one process; name one file of the %u",
			      format->name, files);
}

int gm_cmd_export(struct gm_cli *cli)
{
	const struct gm_export_format *format = cli->format ? gm_export_find(cli->format) : NULL;
	struct gm_job *job;
	int rc;

	if (!format)
		return refuse(cli);
	if (format->write_path && (!cli->out_path || strcmp(cli->out_path, "-") == 0))
		return gm_usage_error("--format %s needs -o OUT", format->name);
	if (format->write_path) {
		gm_cli_find_inputs(cli);
		if (!gm_cli_may_write(cli, cli->out_path))
			return GM_EXIT_USAGE;
		return cli->words_count > 1 && !format->adds
			       ? refuse_several(format, cli->words_count)
			       : write_in_place(cli, format);
	}
	cli->options.keep_records = true;
	job = gm_cli_open(cli);
	if (!job)
		return GM_EXIT_INPUT;
	rc = job->count > 1 && !format->write_job ? refuse_several(format, job->count)
						  : write_to_file(cli, format, job);
	gm_job_free(job);
	return rc;
}
