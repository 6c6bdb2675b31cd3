/*
 * blocks: live blocks by size, or what an address belonged to.
 */
#include "cli.h"
#include "report/doc/block_list.h"
#include "report/job/job_open.h"
#include "report/render/json/json.h"
#include "report/render/json/json_blocks.h"
#include "report/render/text/text_blocks.h"

static void body(struct gm_out *out, struct gm_doc *doc, const struct gm_cli *cli)
{
	struct gm_address_history history;
	struct gm_block_list list;

	if (cli->address_given) {
		history = gm_address_history(doc, cli->address);
		gm_text_address(out, doc, &history);
		return;
	}
	list = gm_list_blocks(doc, cli->least_bytes, cli->most_bytes);
	gm_text_blocks(out, doc, &list);
}

/* Returns the value; of several files a list with one value for each. */
static json_t *value_of(const struct gm_cli *cli, struct gm_doc *doc)
{
	struct gm_address_history history;
	struct gm_block_list list;

	if (cli->address_given) {
		history = gm_address_history(doc, cli->address);
		return gm_json_address(doc, &history);
	}
	list = gm_list_blocks(doc, cli->least_bytes, cli->most_bytes);
	return gm_json_blocks(doc, list.blocks, list.count);
}

int gm_cmd_blocks(struct gm_cli *cli)
{
	struct gm_job *job;
	json_t *value;

	cli->options.keep_records = true;
	job = gm_cli_open(cli);
	if (!job)
		return GM_EXIT_INPUT;
	if (cli->options.json) {
		value = job->several ? json_array() : value_of(cli, job->docs[0]);
		for (unsigned i = 0; job->several && i < job->count; i++)
			json_array_append_new(value, value_of(cli, job->docs[i]));
		gm_json_write_job(job, cli->address_given ? "address" : "blocks", value, stdout);
	} else {
		gm_cli_print(cli, job, body);
	}
	gm_job_close(job);
	return GM_EXIT_FINE;
}
