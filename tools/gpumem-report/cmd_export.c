/*
 * export: writes one of the formats of the table in render/export.c.
 */
#include "cli.h"
#include "report/render/export.h"
#include <string.h>

/* Says which formats there are; GM_EXIT_USAGE. */
static int refuse(const struct gm_cli *cli)
{
	char names[256] = "";

	for (unsigned i = 0; i < gm_export_formats_count; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 i ? ", " : "", gm_export_formats[i].name);
	return gm_usage_error("%s; --format is one of %s",
			      cli->format ? "that format is not known"
					  : "export needs --format FORMAT",
			      names);
}

static int write_to_file(struct gm_cli *cli, const struct gm_export_format *format,
			 struct gm_doc *doc)
{
	FILE *file = gm_cli_output(cli->out_path);
	int rc;

	if (!file)
		return GM_EXIT_USAGE;
	rc = format->write(doc, &cli->options, file);
	if (file != stdout && fclose(file) != 0)
		rc = -1;
	if (rc)
		return gm_usage_error("%s could not be written whole",
				      cli->out_path ? cli->out_path : "standard output");
	return GM_EXIT_FINE;
}

static int write_in_place(struct gm_cli *cli, const struct gm_export_format *format,
			  struct gm_doc *doc)
{
	char error[1024];

	if (format->write_path(doc, &cli->options, cli->out_path, error, sizeof(error)) == 0)
		return GM_EXIT_FINE;
	return gm_usage_error("%s", error);
}

int gm_cmd_export(struct gm_cli *cli)
{
	const struct gm_export_format *format = cli->format ? gm_export_find(cli->format) : NULL;
	struct gm_job *job;
	int rc;

	if (!format)
		return refuse(cli);
	if (cli->words_count != 1)
		return gm_usage_error("export writes one file at a time; name one");
	if (format->write_path && (!cli->out_path || strcmp(cli->out_path, "-") == 0))
		return gm_usage_error("--format %s needs -o OUT", format->name);
	job = gm_cli_open(cli);
	if (!job)
		return GM_EXIT_INPUT;
	rc = format->write ? write_to_file(cli, format, job->docs[0])
			   : write_in_place(cli, format, job->docs[0]);
	gm_job_free(job);
	return rc;
}
