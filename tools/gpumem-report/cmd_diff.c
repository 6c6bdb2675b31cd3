/*
 * diff OLD NEW: totals and sites of two runs side by side.
 */
#include "cli.h"
#include "report/judge.h"
#include "report/render/json.h"
#include "report/render/text_check.h"

static struct gm_doc *open_one(struct gm_cli *cli, const char *path)
{
	char error[1024];
	struct gm_doc *doc = gm_doc_open(path, &cli->options, error, sizeof(error));

	if (!doc)
		fprintf(stderr, "gpumem-report: %s\n", error);
	return doc;
}

static json_t *change_list(struct gm_doc *old_doc, struct gm_doc *new_doc,
			   const struct gm_change *changes, unsigned count)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++) {
		const struct gm_change *change = &changes[i];
		const struct gm_site *site = change->new_site ? change->new_site : change->old_site;

		json_array_append_new(
			list,
			json_pack("{s:s, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
				  "change", gm_change_name(change), "old_site",
				  gm_json_string(change->old_site ? change->old_site->id : NULL),
				  "new_site",
				  gm_json_string(change->new_site ? change->new_site->id : NULL),
				  "kind", gm_kind_name(site->record.kind), "level",
				  gm_level_name(site->record.level), "old_live_bytes",
				  gm_json_bytes(change->old_bytes), "new_live_bytes",
				  gm_json_bytes(change->new_bytes), "old_peak_bytes",
				  gm_json_bytes(change->old_peak_bytes), "new_peak_bytes",
				  gm_json_bytes(change->new_peak_bytes), "old_allocations",
				  gm_json_bytes(change->old_count), "new_allocations",
				  gm_json_bytes(change->new_count), "stack",
				  gm_json_stack(change->new_site ? new_doc : old_doc, site->stack)));
	}
	return list;
}

static void print_totals(struct gm_out *out, struct gm_doc *old_doc, struct gm_doc *new_doc)
{
	static const char *const titles[] = {"<where", "current", "before", "change",
					     "peak",   "before",  "change", NULL};
	char text[GM_FORMAT_BYTES], device[24];
	struct gm_table table;

	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < new_doc->levels_count; i++) {
		const struct gm_level_record *now = &new_doc->levels[i];
		const struct gm_level_record *before =
			gm_doc_level(old_doc, now->device, now->level);

		if (now->level != GM_LEVEL_DRIVER)
			continue;
		gm_table_cell(&table, "%s", gm_device_name(device, now->device));
		gm_table_size(&table, now->current_bytes);
		gm_table_size(&table, before ? before->current_bytes : 0);
		gm_table_cell(&table, "%s",
			      gm_format_change(text, before ? before->current_bytes : 0,
					       now->current_bytes));
		gm_table_size(&table, now->peak_bytes);
		gm_table_size(&table, before ? before->peak_bytes : 0);
		gm_table_cell(
			&table, "%s",
			gm_format_change(text, before ? before->peak_bytes : 0, now->peak_bytes));
	}
	gm_table_end(out, &table);
}

int gm_cmd_diff(struct gm_cli *cli)
{
	struct gm_out out = gm_cli_out(cli);
	struct gm_doc *old_doc, *new_doc;
	struct gm_change *changes;
	unsigned count;

	if (cli->words_count != 2)
		return gm_usage_error("diff compares two files: gpumem-report diff OLD NEW");
	old_doc = open_one(cli, cli->words[0]);
	new_doc = open_one(cli, cli->words[1]);
	if (!old_doc || !new_doc) {
		gm_doc_free(old_doc);
		gm_doc_free(new_doc);
		return GM_EXIT_INPUT;
	}
	changes = gm_compare(old_doc, new_doc, &count);
	if (cli->options.json) {
		json_t *document = gm_json_doc(new_doc);

		json_object_set_new(document, "diff",
				    json_pack("{s:o, s:o, s:o}", "old",
					      gm_json_string(old_doc->path), "new",
					      gm_json_string(new_doc->path), "sites",
					      change_list(old_doc, new_doc, changes, count)));
		gm_json_write(document, stdout);
	} else {
		print_totals(&out, old_doc, new_doc);
		gm_text_changes(&out, changes, count);
	}
	gm_doc_free(old_doc);
	gm_doc_free(new_doc);
	return GM_EXIT_FINE;
}
