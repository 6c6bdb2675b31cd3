/*
 * `blocks`: live blocks as a table, and who owned an address when.
 */
#include "report/render/text/text_blocks.h"
#include "report/doc/enum_names.h"
#include "report/render/text/text_stack.h"
#include "report/stacks/labels.h"
#include "report/stacks/stacks.h"
#include "report/support/format.h"
#include <inttypes.h>
#include <string.h>

static const struct gm_stack *stack_of(const struct gm_doc *doc, uint32_t site)
{
	return site < doc->sites_count ? doc->sites[site].stack : NULL;
}

void gm_text_blocks(struct gm_out *out, struct gm_doc *doc, const struct gm_block_list *list)
{
	static const char *const titles[] = {"<address", "bytes", "<level", "<kind",
					     "<device",	 "at",	  "<site",  NULL};
	char size[GM_FORMAT_BYTES], time[GM_FORMAT_BYTES], device[24];
	struct gm_table table;

	gm_print(out, GM_BOLD, "%u live block%s of %s, largest first\n", list->count,
		 list->count == 1 ? "" : "s", gm_format_size(size, list->bytes));
	gm_table_begin(&table, titles);
	for (unsigned i = 0; i < list->count; i++) {
		const struct gm_alloc_record copy = gm_block_record(doc, list->blocks[i]),
					     *record = &copy;

		gm_table_cell(&table, "0x%" PRIx64, record->key);
		gm_table_size(&table, record->bytes);
		gm_table_cell(&table, "%s", gm_level_title(record->level));
		gm_table_cell(&table, "%s", gm_kind_name(record->kind));
		gm_table_cell(&table, "%s", gm_device_name(device, record->device));
		gm_table_cell(&table, "%s", gm_format_time(time, (double)record->time_ns / 1e9));
		gm_table_cell(&table, "%s", gm_stack_label(doc, stack_of(doc, record->site)));
	}
	gm_table_end(out, &table);
}

static const char *action(const struct gm_event_record *event)
{
	switch (event->op) {
	case GM_OP_ALLOC:
		return "allocated";
	case GM_OP_FREE:
		return "freed";
	case GM_OP_FREE_FAILED:
		return "a free failed";
	case GM_OP_IMPLICIT_FREE:
		return "freed with its owner";
	case GM_OP_MAP:
		return "mapped";
	default:
		return "unmapped";
	}
}

static void print_event(struct gm_out *out, struct gm_doc *doc, const struct gm_event_record *event)
{
	char size[GM_FORMAT_BYTES], time[GM_FORMAT_BYTES];
	const char *function = event->function == UINT16_MAX
				       ? NULL
				       : gm_doc_function(doc, event->function);

	gm_print(out, GM_BOLD, "\n  %12s  %s", gm_format_time(time, (double)event->time_ns / 1e9),
		 action(event));
	gm_wrapf(out, 16 + (unsigned)strlen(action(event)),
		 "  %s at 0x%" PRIx64 ", %s%s%s, thread %u",
		 event->bytes && event->bytes != GM_NO_BYTES ? gm_format_size(size, event->bytes)
							     : "memory",
		 event->key, gm_level_title(event->level), function ? ", by " : "",
		 function ? function : "", event->thread);
	gm_print_stack(out,
		       event->op == GM_OP_ALLOC || event->op == GM_OP_MAP
			       ? gm_event_stack(doc, event)
			       : gm_doc_stack(doc, event->stack),
		       16);
}

static void print_now(struct gm_out *out, struct gm_doc *doc,
		      const struct gm_address_history *history)
{
	char size[GM_FORMAT_BYTES];

	if (!history->blocks_count)
		gm_print(out, GM_BOLD, "0x%" PRIx64 " belongs to no live memory\n",
			 history->address);
	for (unsigned i = 0; i < history->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_block_record(doc, history->blocks[i]),
					     *record = &copy;

		gm_print(out, GM_BOLD, "0x%" PRIx64 " is byte %" PRIu64 " of %s", history->address,
			 history->address - record->key, gm_format_size(size, record->bytes));
		fprintf(out->file, " at 0x%" PRIx64 " (%s%s%s), live\n", record->key,
			gm_level_title(record->level), record->kind == GM_KIND_NONE ? "" : ", ",
			record->kind == GM_KIND_NONE ? "" : gm_kind_name(record->kind));
		gm_print_stack(out, stack_of(doc, record->site), 16);
	}
}

void gm_text_address(struct gm_out *out, struct gm_doc *doc,
		     const struct gm_address_history *history)
{
	char time[GM_FORMAT_BYTES];
	unsigned from = history->count > out->top ? history->count - out->top : 0;

	print_now(out, doc, history);
	if (history->from_ns)
		gm_wrapf(out, 0,
			 "The history begins at %s: what was there before is not known; with "
			 "GPUMEMTRACE_EVENTS=all it is kept from the start.",
			 gm_format_time(time, (double)history->from_ns / 1e9));
	if (!history->count)
		fprintf(out->file, "The history has no event of it.\n");
	if (from)
		fprintf(out->file, "\n  %u earlier event%s (--top)\n", from, from == 1 ? "" : "s");
	for (unsigned i = from; i < history->count; i++)
		print_event(out, doc, &history->events[i]);
}
