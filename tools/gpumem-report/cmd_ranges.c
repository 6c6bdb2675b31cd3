/*
 * ranges: peaks and what was retained in each named range, with the worst of each.
 */
#include "cli.h"
#include "report/render/text/text_ranges.h"

static void body(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli)
{
	(void)cli;
	gm_text_ranges(out, doc);
}

int gm_cmd_ranges(struct gm_cli *cli)
{
	return gm_cli_show(cli, body);
}
