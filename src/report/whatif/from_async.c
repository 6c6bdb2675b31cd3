/*
 * From stream-ordered allocations to requests (from_async.h).
 */
#include "report/whatif/from_async.h"
#include "report/history/events.h"
#include "report/import/ranges.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

#define OUT_OF_MEMORY 2
#define FIRST_SAMPLES 512u /* the shim asks a pool for its reserve so often at each call */

struct reading {
	struct gm_requests *requests;
	struct gm_doc *doc;
	struct gm_ranges blocks; /* tags: their numbers */
	uint16_t *streams;	 /* of the request, by number of the block */
	unsigned room;
};

static struct gm_request_origin origin_of(const struct gm_event_record *event)
{
	return (struct gm_request_origin){event->time_ns, event->stack, event->site, event->key};
}

static void add(struct reading *reading, const struct gm_event_record *event,
		struct gm_request request)
{
	request.pool = (uint16_t)gm_requests_pool(reading->requests, 0, event->stream);
	gm_requests_add(reading->requests, request, origin_of(event));
}

static void begin_block(struct reading *reading, const struct gm_event_record *event)
{
	struct gm_requests *requests = reading->requests;

	if (!gm_ranges_add(&reading->blocks, event->key, event->key + event->bytes,
			   requests->blocks))
		return;
	if (requests->blocks == reading->room) {
		reading->room = reading->room ? 2 * reading->room : 1024;
		reading->streams =
			gm_realloc(reading->streams, reading->room * sizeof(*reading->streams));
	}
	reading->streams[requests->blocks] = (uint16_t)gm_requests_pool(requests, 0, event->stream);
	add(reading, event,
	    (struct gm_request){
		    .op = GM_REQUEST_ALLOC, .bytes = event->bytes, .block = requests->blocks++});
}

/* cudaFree waits for the whole device, which cudaFreeAsync does not. */
static bool waits(const struct reading *reading, const struct gm_event_record *event)
{
	const char *name = gm_doc_function(reading->doc, event->function);

	return !name || !strstr(name, "Async");
}

static void end_block(struct reading *reading, const struct gm_event_record *event)
{
	struct gm_requests *requests = reading->requests;
	struct gm_tagged_range *block = gm_ranges_find(&reading->blocks, event->key);
	struct gm_request request = {.op = GM_REQUEST_FREE};

	if (!block)
		return;
	request.block = (uint32_t)block->tag;
	if (event->op == GM_OP_FREE && !waits(reading, event) &&
	    gm_requests_pool(requests, 0, event->stream) != reading->streams[request.block]) {
		request.op = GM_REQUEST_FREE_LATER;
		requests->pending++;
	}
	add(reading, event, request);
	gm_ranges_remove(&reading->blocks, event->key);
	if (event->op == GM_OP_FREE && waits(reading, event))
		add(reading, event, (struct gm_request){.op = GM_REQUEST_WAIT_ALL});
}

/* The driver had less left than the request needed. */
static void refuse(struct reading *reading, const struct gm_event_record *event)
{
	const struct gm_doc *doc = reading->doc;
	uint64_t free_bytes = UINT64_MAX;

	for (unsigned i = 0; i < doc->ooms_count; i++)
		if (doc->ooms[i].record.time_ns == event->time_ns &&
		    doc->ooms[i].record.device == event->device &&
		    doc->ooms[i].record.free_bytes != GM_NO_BYTES)
			free_bytes = doc->ooms[i].record.free_bytes;
	gm_requests_refuse(reading->requests, gm_requests_pool(reading->requests, 0, event->stream),
			   event->bytes, event->bytes, free_bytes, origin_of(event));
}

static void read_event(const struct gm_event_record *event, void *data)
{
	struct reading *reading = data;

	if (event->device != reading->requests->device || event->level != GM_LEVEL_DRIVER ||
	    event->kind != GM_KIND_ASYNC)
		return;
	switch (event->op) {
	case GM_OP_ALLOC:
		begin_block(reading, event);
		return;
	case GM_OP_FREE:
	case GM_OP_IMPLICIT_FREE:
		end_block(reading, event);
		return;
	case GM_OP_ALLOC_FAILED:
		if (event->error == OUT_OF_MEMORY)
			refuse(reading, event);
		return;
	case GM_OP_WAIT:
		add(reading, event, (struct gm_request){.op = GM_REQUEST_WAIT});
		return;
	case GM_OP_WAIT_ALL:
		add(reading, event, (struct gm_request){.op = GM_REQUEST_WAIT_ALL});
		return;
	case GM_OP_TRIM:
		add(reading, event,
		    (struct gm_request){.op = GM_REQUEST_TRIM, .bytes = event->bytes});
		return;
	default:
		return;
	}
}

static bool of_streams(const struct gm_pool_record *pool, int device)
{
	return (pool->type == GM_POOL_DEFAULT || pool->type == GM_POOL_EXPLICIT) &&
	       pool->device >= 0 && pool->allocations && (device < 0 || pool->device == device);
}

bool gm_requests_from_async(struct gm_requests *requests, struct gm_doc *doc, int device)
{
	struct reading reading = {.requests = requests, .doc = doc};
	const struct gm_pool_record *most = NULL;
	bool settings =
		doc->allocator_settings && strstr(doc->allocator_settings, "cudaMallocAsync");

	for (unsigned i = 0; i < doc->pools_count; i++)
		if (of_streams(&doc->pools[i], device) &&
		    (!most || doc->pools[i].reserved_peak_bytes > most->reserved_peak_bytes))
			most = &doc->pools[i];
	if (!most || !doc->journal)
		return false;
	*requests = (struct gm_requests){.most_limit_bytes = UINT64_MAX,
					 .device = most->device,
					 .driver_pool = true,
					 .by_torch = settings,
					 .peak_sampled = most->samples >= FIRST_SAMPLES,
					 .reserved_peak_bytes = most->reserved_peak_bytes};
	requests->conf = settings ? doc->allocator_settings
			 : most->release_threshold_bytes >= GM_NO_BYTES - 1 /* as recorded */
				 ? "release_threshold:max"
				 : gm_doc_printf(doc, "release_threshold:%llu",
						 (unsigned long long)most->release_threshold_bytes);
	gm_history_each_traced(doc, read_event, &reading);
	requests->gap = gm_history_gap(doc);
	for (unsigned i = 0; i < doc->pools_count; i++)
		if (&doc->pools[i] != most && of_streams(&doc->pools[i], most->device))
			requests->gap = "the run used several pools of the driver's, which the "
					"history does not tell apart";
	gm_ranges_free(&reading.blocks);
	free(reading.streams);
	return true;
}
