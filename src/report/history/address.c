/*
 * Following an address through the history, see address.h.
 */
#include "report/history/address.h"
#include <stdlib.h>

struct search {
	struct gm_doc *doc;
	struct gm_address_history *found;
	uint64_t first_ns; /* of any event; GM_NO_BYTES: there was none */
};

/* True if the keys of the space are addresses. */
static bool has_addresses(uint8_t space)
{
	return space == GM_SPACE_POINTER || space == GM_SPACE_RESERVATION ||
	       space == GM_SPACE_MAPPING || space == GM_SPACE_REGISTERED ||
	       space == GM_SPACE_TORCH || space == GM_SPACE_CUSTOM;
}

static bool covers(uint64_t key, uint64_t bytes, uint64_t address)
{
	return address == key || (address > key && address - key < bytes);
}

static bool concerns(const struct gm_event_record *event)
{
	return event->op == GM_OP_ALLOC || event->op == GM_OP_FREE ||
	       event->op == GM_OP_FREE_FAILED || event->op == GM_OP_IMPLICIT_FREE ||
	       event->op == GM_OP_MAP || event->op == GM_OP_UNMAP;
}

static void visit(const struct gm_event_record *event, void *data)
{
	struct search *search = data;
	struct gm_event_record *slot;

	if (search->first_ns == GM_NO_BYTES)
		search->first_ns = event->time_ns;
	if (!concerns(event) || !has_addresses(event->space) ||
	    !covers(event->key, event->bytes, search->found->address))
		return;
	slot = gm_zone_push(&search->doc->zone, &search->found->events, &search->found->count,
			    sizeof(*slot));
	*slot = *event;
}

static int compare_levels(const void *a, const void *b, void *doc)
{
	const struct gm_alloc_record x = gm_block_record(doc, *(const struct gm_block *const *)a);
	const struct gm_alloc_record y = gm_block_record(doc, *(const struct gm_block *const *)b);

	if (x.level != y.level)
		return x.level < y.level ? 1 : -1;
	return x.bytes > y.bytes ? 1 : -1;
}

struct gm_address_history gm_address_history(struct gm_doc *doc, uint64_t address)
{
	struct gm_address_history found = {.address = address};
	struct search search = {doc, &found, GM_NO_BYTES};
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_EVENTS);

	gm_history_each(doc, visit, &search);
	if (!doc->journal && doc->header->event_head > records)
		found.from_ns = search.first_ns;
	for (unsigned i = 0; i < doc->blocks_count; i++) {
		const struct gm_alloc_record copy = gm_doc_block(doc, i), *record = &copy;
		const struct gm_block **slot;

		if (!has_addresses(record->space) || !covers(record->key, record->bytes, address))
			continue;
		slot = gm_zone_push(&doc->zone, &found.blocks, &found.blocks_count, sizeof(*slot));
		*slot = &doc->blocks[i];
	}
	if (found.blocks_count)
		qsort_r(found.blocks, found.blocks_count, sizeof(*found.blocks), compare_levels,
			doc);
	return found;
}
