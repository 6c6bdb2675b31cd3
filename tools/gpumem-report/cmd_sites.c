/*
 * sites: all allocation sites, by a key.
 */
#include "cli.h"
#include "report/render/text/text_sites.h"

static void body(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli)
{
	gm_text_sites(out, doc, cli->options.sort, cli->options.at_peak);
}

int gm_cmd_sites(struct gm_cli *cli)
{
	cli->options.min_is_peak = true;
	return gm_cli_show(cli, body);
}
