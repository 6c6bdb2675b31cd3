/*
 * `blocks[]` and `address {}`, see json_blocks.h.
 */
#include "report/render/json/json_blocks.h"
#include "report/doc/enum_names.h"
#include "report/render/json/json_values.h"
#include "report/stacks/stacks.h"
#include <inttypes.h>
#include <stdio.h>

/* Formats an address as debuggers print it: a number of JSON need not hold 64 bits. */
static json_t *address(uint64_t key)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, key);
	return json_string(text);
}

static json_t *site_id(const struct gm_doc *doc, uint32_t site)
{
	return gm_json_string(site < doc->sites_count ? doc->sites[site].id : NULL);
}

json_t *gm_json_blocks(const struct gm_doc *doc, const struct gm_block *const *blocks,
		       unsigned count)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++) {
		const struct gm_alloc_record copy = gm_block_record(doc, blocks[i]),
					     *record = &copy;

		json_array_append_new(
			list, json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:I, s:o, s:o}", "address",
					address(record->key), "bytes", gm_json_bytes(record->bytes),
					"level", gm_level_name(record->level), "kind",
					record->kind == GM_KIND_NONE
						? json_null()
						: json_string(gm_kind_name(record->kind)),
					"device", gm_json_device(record->device), "time_s",
					gm_json_seconds(record->time_ns), "thread",
					(json_int_t)record->thread, "stream",
					address(record->stream), "site",
					site_id(doc, record->site)));
	}
	return list;
}

static const char *op_name(uint8_t op)
{
	return op == GM_OP_ALLOC	   ? "alloc"
	       : op == GM_OP_FREE	   ? "free"
	       : op == GM_OP_FREE_FAILED   ? "free-failed"
	       : op == GM_OP_IMPLICIT_FREE ? "implicit-free"
	       : op == GM_OP_MAP	   ? "map"
					   : "unmap";
}

static json_t *event_object(struct gm_doc *doc, const struct gm_event_record *event)
{
	bool begins = event->op == GM_OP_ALLOC || event->op == GM_OP_MAP;
	bool sized = event->bytes || event->op == GM_OP_ALLOC;

	return json_pack(
		"{s:o, s:s, s:o, s:o, s:s, s:o, s:I, s:o, s:o, s:o}", "time_s",
		gm_json_seconds(event->time_ns), "op", op_name(event->op), "address",
		address(event->key), "bytes", gm_json_bytes(sized ? event->bytes : GM_NO_BYTES),
		"level", gm_level_name(event->level), "api",
		gm_json_string(event->function == UINT16_MAX
				       ? NULL
				       : gm_doc_function(doc, event->function)),
		"thread", (json_int_t)event->thread, "device", gm_json_device(event->device),
		"site", site_id(doc, event->site), "stack",
		gm_json_stack(begins ? gm_event_stack(doc, event)
				     : gm_doc_stack(doc, event->stack)));
}

json_t *gm_json_address(struct gm_doc *doc, const struct gm_address_history *history)
{
	json_t *events = json_array();

	for (unsigned i = 0; i < history->count; i++)
		json_array_append_new(events, event_object(doc, &history->events[i]));
	return json_pack("{s:o, s:o, s:o, s:o}", "address", address(history->address), "live",
			 gm_json_blocks(doc, history->blocks, history->blocks_count), "events",
			 events, "from_s", gm_json_seconds(history->from_ns));
}
