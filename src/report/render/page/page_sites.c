/*
 * The page's facts about a site beside the document: its place in words, and the frames that
 * matter.
 */
#include "report/render/json/json_values.h"
#include "report/render/page/internal.h"
#include "report/stacks/labels.h"

static void put_site(struct gm_json_out *out, struct gm_doc *doc, const struct gm_stack *stack)
{
	unsigned count = stack ? stack->count : 0;

	gm_json_put_text(out, "{\"place\":");
	gm_json_put_value(out, gm_json_string(gm_stack_label(doc, stack)));
	gm_json_put_text(out, ",\"own_frame\":");
	gm_json_put_integer(out, count ? (int)gm_stack_label_index(stack) : -1);
	gm_json_put_text(out, ",\"plumbing\":\"");
	for (unsigned i = 0; i < count; i++)
		gm_json_put(out, gm_stack_frame(stack, i)->plumbing ? "1" : "0", 1);
	gm_json_put_text(out, "\"}");
}

void gm_page_put_sites(struct gm_json_out *out, struct gm_doc *doc, const int *numbers)
{
	bool first = true;

	gm_json_put_text(out, "[");
	for (unsigned i = 0; i < doc->sites_count; i++) {
		if (numbers[i] < 0)
			continue;
		if (!first)
			gm_json_put(out, ",", 1);
		put_site(out, doc, doc->sites[i].stack);
		first = false;
	}
	gm_json_put_text(out, "]");
}
