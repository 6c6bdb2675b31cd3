/*
 * oom: out-of-memory events.
 */
#include "cli.h"
#include "report/render/text/text_events.h"

static void body(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli)
{
	(void)cli;
	gm_text_ooms(out, doc);
}

int gm_cmd_oom(struct gm_cli *cli)
{
	return gm_cli_show(cli, body);
}
