/*
 * The page's facts about a site beside the document: its place in words, and the frames that
 * matter.
 */
#include "report/render/json/json_values.h"
#include "report/render/page/internal.h"
#include "report/stacks/labels.h"

static json_t *plumbing(struct gm_doc *doc, const struct gm_stack *stack)
{
	char *marks = gm_zone_alloc(&doc->zone, stack ? stack->count + 1 : 1, 1);

	for (unsigned i = 0; stack && i < stack->count; i++)
		marks[i] = stack->frames[i]->plumbing ? '1' : '0';
	return json_string(marks);
}

json_t *gm_page_sites(struct gm_doc *doc, const int *numbers)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->sites_count; i++) {
		const struct gm_stack *stack = doc->sites[i].stack;

		if (numbers[i] < 0)
			continue;
		json_array_append_new(list,
				      json_pack("{s:o, s:i, s:o}", "place",
						gm_json_string(gm_stack_label(doc, stack)),
						"own_frame", stack && stack->count
							? (int)gm_stack_label_index(stack)
							: -1,
						"plumbing", plumbing(doc, stack)));
	}
	return list;
}
