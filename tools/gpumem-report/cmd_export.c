/*
 * export: writes one of the formats of the table in render/export.c.
 */
#include "cli.h"
#include "report/render/export.h"
#include <string.h>

static const struct gm_export_format *find_format(const char *name)
{
	for (unsigned i = 0; i < gm_export_formats_count; i++)
		if (strcmp(gm_export_formats[i].name, name) == 0)
			return &gm_export_formats[i];
	return NULL;
}

int gm_cmd_export(struct gm_cli *cli)
{
	const struct gm_export_format *format = cli->format ? find_format(cli->format) : NULL;
	struct gm_job *job;
	FILE *file;
	int rc;

	if (!format)
		return gm_usage_error("%s; --format is one of json, collapsed, csv, openmetrics",
				      cli->format ? "that format is not known"
						  : "export needs --format FORMAT");
	if (cli->words_count != 1)
		return gm_usage_error("export writes one file at a time; name one");
	job = gm_cli_open(cli);
	if (!job)
		return GM_EXIT_INPUT;
	file = gm_cli_output(cli->out_path);
	if (!file) {
		gm_job_free(job);
		return GM_EXIT_USAGE;
	}
	rc = format->write(job->docs[0], &cli->options, file);
	if (file != stdout && fclose(file) != 0)
		rc = -1;
	gm_job_free(job);
	if (rc)
		return gm_usage_error("%s could not be written whole",
				      cli->out_path ? cli->out_path : "standard output");
	return GM_EXIT_FINE;
}
