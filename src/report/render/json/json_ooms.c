/*
 * `ooms` of the JSON document. Beside contract.md's keys: what held the memory by category, the
 * holes, the other processes, what changed since the last mark, the library that hides the error.
 */
#include "report/render/json/internal.h"
#include "report/stacks/stacks.h"

static json_t *tops(struct gm_doc *doc, const struct gm_oom_top *top, unsigned count, bool stacks)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++) {
		const struct gm_site *site = &doc->sites[top[i].site];
		json_t *entry = json_pack("{s:s, s:o, s:o, s:s}", "site", site->id, "bytes",
					  gm_json_bytes(top[i].bytes), "count",
					  gm_json_bytes(top[i].count), "category", site->category);

		if (stacks)
			json_object_set_new(entry, "stack", gm_json_stack(site->stack));
		json_array_append_new(list, entry);
	}
	return list;
}

static json_t *categories(const struct gm_oom *oom)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < oom->categories_count; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:o}", "category", oom->categories[i].what,
						"bytes", gm_json_bytes(oom->categories[i].bytes)));
	return list;
}

static json_t *processes(const struct gm_oom *oom)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < oom->processes_count; i++)
		json_array_append_new(list, json_pack("{s:o, s:o, s:b}", "pid",
						      gm_json_bytes(oom->processes[i].pid), "bytes",
						      gm_json_bytes(oom->processes[i].bytes),
						      "gone", oom->processes[i].gone));
	return list;
}

/* The figures of PyTorch's holes at that moment; null without PyTorch. */
static json_t *fragmentation(const struct gm_oom_record *record)
{
	uint64_t reserved = record->torch_reserved_bytes, used = record->torch_allocated_bytes;

	if (reserved == GM_NO_BYTES || used == GM_NO_BYTES || !reserved || used > reserved)
		return json_null();
	return json_pack("{s:o, s:o, s:f, s:o}", "reserved_bytes", gm_json_bytes(reserved),
			 "used_bytes", gm_json_bytes(used), "percent",
			 100.0 * (double)(reserved - used) / (double)reserved, "largest_free_bytes",
			 gm_json_bytes(record->torch_largest_hole_bytes));
}

/* Each level at that moment. */
static json_t *holes(const struct gm_oom *oom)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < oom->holes_count; i++) {
		json_t *row = json_pack("{s:s}", "level", oom->holes[i].level);

		json_object_update_new(row, gm_json_holes(&oom->holes[i]));
		json_array_append_new(list, row);
	}
	return list;
}

/*
 * Lists the bytes that were freed on streams that nobody had waited for since: by stream, most
 * first.
 */
static json_t *pending(struct gm_doc *doc, const struct gm_oom_record *record)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < GM_OOM_PENDING && record->pending[i].bytes; i++) {
		const struct gm_oom_pending *of = &record->pending[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:o}", "stream",
						gm_json_bytes(of->stream), "bytes",
						gm_json_bytes(of->bytes), "stack",
						gm_json_stack(gm_doc_stack(doc, of->stack))));
	}
	return list;
}

static json_t *event(struct gm_doc *doc, const struct gm_oom *oom)
{
	const struct gm_oom_record *record = &oom->record;
	json_t *object =
		json_pack("{s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:o}",
			  "time_s", gm_json_seconds(record->time_ns), "device",
			  gm_json_device(record->device), "api", gm_json_string(oom->api), "error",
			  record->error, "requested_bytes", gm_json_bytes(record->requested_bytes),
			  "free_bytes", gm_json_bytes(record->free_bytes), "total_bytes",
			  gm_json_bytes(record->total_bytes), "tracked_bytes",
			  gm_json_bytes(record->tracked_bytes), "others_bytes",
			  gm_json_bytes(record->others_bytes), "verdict", oom->verdict, "phase",
			  oom->phase, "stack", gm_json_stack(oom->stack), "top_sites",
			  tops(doc, oom->top, oom->top_count, true), "advice",
			  gm_json_strings(oom->advice, oom->advice_count));

	json_object_update_new(
		object,
		json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "attempts",
			  gm_json_bytes(record->attempts), "driver_bytes",
			  record->driver_bytes ? gm_json_bytes(record->driver_bytes) : json_null(),
			  "injected", record->injected != 0,
			  "library", gm_json_string(oom->library), "categories", categories(oom),
			  "fragmentation", fragmentation(record), "holes", holes(oom), "processes",
			  processes(oom), "mark", gm_json_string(oom->mark), "changes",
			  tops(doc, oom->changes, oom->changes_count, false), "pending",
			  pending(doc, record)));
	return object;
}

json_t *gm_json_ooms(struct gm_doc *doc)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < doc->ooms_count; i++)
		json_array_append_new(list, event(doc, &doc->ooms[i]));
	return list;
}
