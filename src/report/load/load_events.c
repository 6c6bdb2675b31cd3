/*
 * Errors and out-of-memory events with their stacks and runs of sites. Records whose type no
 * version of the format has are left out.
 */
#include "report/holes/holes_then.h"
#include "report/load/internal.h"
#include "report/stacks/stacks.h"
#include <stdlib.h>
#include <string.h>

static const char *const error_names[GM_ERROR_TYPES] = {
	"double-free",	  "unknown-pointer",	"interior-pointer",
	"wrong-family",	  "free-failed",	"free-after-reset",
	"released-twice", "freed-while-mapped", "freed-while-exported"};

static void load_errors(struct gm_doc *doc)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_ERRORS);

	for (uint32_t i = 0; i < records; i++) {
		struct gm_error_record record;
		struct gm_error *error;

		if (!gm_reader_get(doc->reader, GM_TABLE_ERRORS, i, &record, sizeof(record)))
			continue;
		if (record.type < GM_ERROR_TYPES)
			error = gm_zone_push(&doc->zone, &doc->errors, &doc->errors_count,
					     sizeof(*error));
		else if (record.type == GM_ERROR_ALLOC_FAILED)
			error = gm_zone_push(&doc->zone, &doc->failures, &doc->failures_count,
					     sizeof(*error));
		else
			continue;
		error->record = record;
		error->type = record.type < GM_ERROR_TYPES ? error_names[record.type] : NULL;
		error->api = gm_doc_function(doc, record.function);
		error->stack = gm_doc_stack(doc, record.stack);
		error->first_free_stack = gm_doc_stack(doc, record.first_free_stack);
	}
}

static int compare_top(const void *a, const void *b)
{
	const struct gm_oom_top *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static void load_top(struct gm_doc *doc, struct gm_oom *oom)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_OOM_SITES);

	for (uint32_t i = 0; i < oom->record.sites; i++) {
		struct gm_oom_site_record record;
		struct gm_oom_top *top;

		if (oom->record.first_site >= records || i >= records - oom->record.first_site)
			break;
		if (!gm_reader_get(doc->reader, GM_TABLE_OOM_SITES, oom->record.first_site + i,
				   &record, sizeof(record)) ||
		    record.site >= doc->sites_count)
			continue;
		top = gm_zone_push(&doc->zone, &oom->top, &oom->top_count, sizeof(*top));
		*top = (struct gm_oom_top){record.site, record.bytes, record.count};
	}
	if (oom->top_count)
		qsort(oom->top, oom->top_count, sizeof(*oom->top), compare_top);
}

static int compare_time(const void *a, const void *b)
{
	const struct gm_oom_record *x = &((const struct gm_oom *)a)->record;
	const struct gm_oom_record *y = &((const struct gm_oom *)b)->record;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static void load_open_ranges(struct gm_doc *doc, struct gm_oom *oom)
{
	char *rest = (char *)gm_doc_text(doc, oom->record.ranges, sizeof(oom->record.ranges));

	for (char *name; (name = strsep(&rest, "\n"));)
		if (*name)
			*(const char **)gm_zone_push(&doc->zone, &oom->ranges, &oom->ranges_count,
						     sizeof(*oom->ranges)) = name;
}

/* In order of time: in the file a late one can lie in an early one's place. */
static void load_ooms(struct gm_doc *doc)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_OOMS);

	if (records > GM_OOMS_KEPT) /* damage: each of them may name all blocks there are */
		records = GM_OOMS_KEPT;
	doc->ooms = gm_zone_alloc(&doc->zone, records, sizeof(*doc->ooms));
	for (uint32_t i = 0; i < records; i++) {
		struct gm_oom *oom = &doc->ooms[doc->ooms_count];

		if (!gm_reader_get(doc->reader, GM_TABLE_OOMS, i, &oom->record,
				   sizeof(oom->record)) ||
		    oom->record.withdrawn)
			continue;
		oom->api = gm_doc_function(doc, oom->record.function);
		oom->stack = gm_doc_stack(doc, oom->record.stack);
		for (unsigned k = 0; k < GM_OOM_PENDING && oom->record.pending[k].bytes; k++)
			gm_doc_stack(doc, oom->record.pending[k].stack);
		load_top(doc, oom);
		load_open_ranges(doc, oom);
		gm_load_oom_levels(doc, oom);
		doc->ooms_count++;
	}
	if (doc->ooms_count)
		qsort(doc->ooms, doc->ooms_count, sizeof(*doc->ooms), compare_time);
	if (doc->header->oom_events > doc->ooms_count)
		doc->ooms_lost = doc->header->oom_events - doc->ooms_count;
}

void gm_load_events(struct gm_doc *doc)
{
	load_errors(doc);
	load_ooms(doc);
	for (unsigned i = 0; i < doc->devices_count; i++)
		gm_doc_stack(doc, doc->devices[i].record.context_stack);
	for (unsigned i = 0; i < doc->contexts_count; i++)
		gm_doc_stack(doc, doc->contexts[i].stack);
	for (unsigned i = 0; i < doc->costs_count; i++)
		gm_doc_stack(doc, doc->costs[i].stack);
	for (unsigned i = 0; i < doc->captures_count; i++)
		gm_doc_stack(doc, doc->captures[i].stack);
	for (unsigned i = 0; i < doc->implicit_count; i++)
		gm_doc_stack(doc, doc->implicit[i].stack);
	for (unsigned i = 0; i < doc->freed_exports_count; i++)
		gm_doc_stack(doc, doc->freed_exports[i].stack);
}
