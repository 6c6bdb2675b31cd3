/*
 * summary: the report of one process; of several, the table of ranks and what they have in common.
 */
#include "cli.h"
#include "report/render/text/text_summary.h"

static void body(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli)
{
	/* Three lines each are enough of several processes. */
	gm_text_summary(out, doc, cli->options.quiet || cli->words_count > 1);
}

void gm_cli_print_summary(struct gm_cli *cli, struct gm_job *job)
{
	gm_cli_print(cli, job, body);
}

int gm_cmd_summary(struct gm_cli *cli)
{
	return gm_cli_show(cli, body);
}
