/*
 * html: one self-contained page of what the files hold.
 */
#include "cli.h"
#include "report/render/page/html.h"
#include "report/job/job_open.h"
#include <string.h>

int gm_cmd_html(struct gm_cli *cli)
{
	struct gm_job *job;
	FILE *file;
	int rc;

	if (!cli->out_path)
		return gm_usage_error(
			"html needs -o OUT, the page to write (- for standard output)");
	if (gm_html_lacks())
		return gm_usage_error("html: %s", gm_html_lacks());
	cli->options.keep_records = true;
	cli->options.fine_timeline = true;
	job = gm_cli_open(cli);
	if (!job)
		return GM_EXIT_INPUT;
	file = gm_cli_output(cli, cli->out_path);
	if (!file) {
		gm_job_close(job);
		return GM_EXIT_USAGE;
	}
	rc = gm_html_write(job, cli->words, cli->words_count, file);
	if (file != stdout && fclose(file) != 0)
		rc = -1;
	gm_job_close(job);
	if (rc && file != stdout)
		return gm_usage_error("%s could not be written whole", cli->out_path);
	return rc ? GM_EXIT_USAGE : GM_EXIT_FINE; /* of standard output main says it */
}
