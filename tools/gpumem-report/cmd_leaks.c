/*
 * leaks: sites by verdict, with stacks.
 */
#include "cli.h"
#include "report/render/text/text_sites.h"

static void body(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli)
{
	gm_text_leaks(out, doc, cli->options.all);
}

int gm_cmd_leaks(struct gm_cli *cli)
{
	return gm_cli_show(cli, body);
}
