/*
 * timeline: usage over time.
 */
#include "cli.h"
#include "report/render/text/text_timeline.h"

static void body(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli)
{
	(void)cli;
	gm_text_timeline(out, doc);
}

int gm_cmd_timeline(struct gm_cli *cli)
{
	cli->options.fine_timeline = true;
	return gm_cli_show(cli, body);
}
