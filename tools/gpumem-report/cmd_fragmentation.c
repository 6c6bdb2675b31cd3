/*
 * fragmentation: reserved, used, holes, and who pins them.
 */
#include "cli.h"
#include "report/render/text/text_holes.h"

static void body(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli)
{
	(void)cli;
	gm_text_fragmentation(out, doc);
}

int gm_cmd_fragmentation(struct gm_cli *cli)
{
	return gm_cli_show(cli, body);
}
