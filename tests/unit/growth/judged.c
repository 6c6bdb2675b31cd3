/* See judged.h: a document with the sites and blocks of a trace, no history, and nothing else. */
#include "judged.h"
#include "report/history/events.h"
#include "report/judge/judge.h"
#include "report/judge/verdict.h"

#include <stdio.h>

static char why[256];

static void load(struct gm_doc *doc)
{
	struct trace_books books = trace_end();

	doc->header = books.header;
	doc->clean_exit = true;
	doc->ring = gm_zone_alloc(&doc->zone, 1, sizeof(*doc->ring));
	doc->sites = gm_zone_alloc(&doc->zone, books.sites_count, sizeof(*doc->sites));
	doc->sites_count = books.sites_count;
	for (uint32_t i = 0; i < books.sites_count; i++)
		gm_site_put(doc, &doc->sites[i], &books.sites[i]);
	doc->blocks = gm_zone_alloc(&doc->zone, books.blocks_count + 1, sizeof(*doc->blocks));
	for (uint32_t i = 0; i < books.blocks_count; i++)
		if (books.blocks[i].state == GM_STATE_LIVE)
			gm_block_put(doc, &doc->blocks[doc->blocks_count++], &books.blocks[i]);
	for (uint32_t i = 0; i < books.sites_count; i++) {
		doc->sites[i].phase = "other";
		doc->sites[i].work_bytes = books.sites[i].live_bytes;
		doc->sites[i].work_count = books.sites[i].live_count;
	}
}

enum gm_verdict trace_verdict(unsigned site)
{
	enum gm_verdict verdict = GM_RELEASED;
	struct gm_doc doc = {0};

	if (trace_site(site) == GM_NONE)
		return verdict;
	load(&doc);
	gm_judge_sites(&doc, GM_WARMUP_WINDOWS);
	verdict = doc.sites[trace_site(site)].verdict;
	snprintf(why, sizeof(why), "%s", doc.sites[trace_site(site)].why);
	gm_zone_free(&doc.zone);
	return verdict;
}

const char *trace_why(void)
{
	return why;
}
