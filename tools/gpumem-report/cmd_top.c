/*
 * top: a live view of a traced process or of a file.
 */
#include "cli.h"
#include "report/render/json/json.h"
#include "top_screen.h"
#include "report/doc/options.h"
#include "report/render/top/top.h"
#include "report/job/job_open.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_line(void *data, enum gm_style style, const char *line)
{
	struct gm_out *out = data;
	size_t length = strlen(line);

	while (length && line[length - 1] == ' ')
		length--;
	gm_print(out, style, "%.*s", (int)length, line);
	fputc('\n', out->file);
}

/* Prints one screen: the head, and as many sites as --top asks for. */
static void print_screen(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli)
{
	struct gm_top top;

	gm_top_init(&top, &cli->options);
	gm_top_sample(&top, doc, 0);
	gm_top_growth_by_window(&top, doc);
	top.rows = cli->options.top;
	gm_top_lines(&top, doc, out->width, UINT_MAX, print_line, out);
	gm_top_free(&top);
}

/* A screen of each process, of several with the table of ranks and the whole; or the document. */
static int print_once(struct gm_cli *cli)
{
	const struct gm_options asked = cli->options;
	struct gm_job *job;

	/* The head tells of all that the filters hide from the list of sites. */
	if (!asked.json && cli->words_count == 1)
		cli->options.device = cli->options.kind = cli->options.level = -1;
	job = gm_cli_open(cli);
	cli->options = asked;
	if (!job)
		return GM_EXIT_INPUT;
	if (asked.json)
		gm_json_write_job(job, NULL, NULL, stdout);
	else
		gm_cli_print(cli, job, print_screen);
	gm_job_close(job);
	return GM_EXIT_FINE;
}

static int show(struct gm_cli *cli)
{
	char error[1024] = "";
	int unread;

	gm_cli_find_inputs(cli);
	if (!cli->words_count)
		return GM_EXIT_INPUT;
	unread = gm_top_run(cli->words, cli->words_count, &cli->options, gm_cli_complain, error,
			    sizeof(error));
	if (unread < 0)
		gm_cli_complain(error);
	return unread ? GM_EXIT_INPUT : GM_EXIT_FINE;
}

int gm_cmd_top(struct gm_cli *cli)
{
	bool all = gm_cli_find_processes(cli);
	int rc = GM_EXIT_INPUT;

	if (cli->words_count)
		rc = cli->options.json || cli->once ? print_once(cli) : show(cli);
	return rc == GM_EXIT_FINE && !all ? GM_EXIT_INPUT : rc;
}
