/*
 * From events to requests (from_events.h).
 */
#include "report/whatif/from_events.h"
#include "account/sizes.h"
#include "account/torch_record.h"
#include "report/history/events.h"
#include "report/import/ranges.h"
#include "report/journal/journal_file.h"
#include <stdlib.h>

#define OUT_OF_MEMORY 2
#define SLACK_UNIT    512ull
#define TORCH_STREAMS 32u
#define UNASSIGNED    UINT32_MAX
#define UNKNOWN_RANGE (32ull << 30)
#define PENDING	      (1ull << 32) /* in the tag of a block: freed, and streams still use it */

/* A segment as it is seen, by the tag of its range. */
struct seen_segment {
	uint32_t group; /* of segments of one stream and pool; UNASSIGNED until it holds a block */
	bool expandable;
};

struct reading {
	struct gm_requests *requests;
	struct gm_doc *doc;
	struct gm_ranges segments, blocks; /* tags: in seen[], numbers of blocks */
	bool traced;			   /* the history says what PyTorch's allocator traced: */
	bool untold;			   /* but not of all blocks */
	bool told;			   /* the pool of the next blocks */
	unsigned pool;			   /* in requests->pools */
	uint64_t asked, asked_bytes;	   /* the next block, 0 none, and what was asked for */
	uint64_t waits;			   /* the block whose free waits for streams; 0 none */
	struct seen_segment *seen;
	unsigned seen_count, seen_room;
	uint32_t groups;
	uint32_t first_group[2]; /* of the large pool, of the small one */
	uint32_t last_group;	 /* the highest but those */
	uint64_t *ranges;	 /* starts of the address ranges of expandable segments; by group */
	unsigned ranges_count, ranges_room;
	uint64_t range_bytes;
	bool expandable;	/* memory was mapped */
	int64_t unmapped_bytes; /* handles that exist and are not mapped */
	bool failing;		/* a request of PyTorch's to the driver just failed */
	bool releasing;		/* segments are being given back */
	uint64_t before_release;
	bool unclear_release; /* no request had failed before: empty_cache(), or a limit's retry */
};

/* ---- segments ---- */

static bool of_torch(const struct reading *reading, const struct gm_event_record *event)
{
	return event->site < reading->doc->sites_count &&
	       reading->doc->sites[event->site].torch_segments;
}

static void add_segment(struct reading *reading, uint64_t address, uint64_t bytes, bool expandable)
{
	if (!bytes ||
	    !gm_ranges_add(&reading->segments, address, address + bytes, reading->seen_count))
		return;
	if (reading->seen_count == reading->seen_room) {
		reading->seen_room = reading->seen_room ? 2 * reading->seen_room : 256;
		reading->seen =
			gm_realloc(reading->seen, reading->seen_room * sizeof(*reading->seen));
	}
	reading->seen[reading->seen_count++] = (struct seen_segment){UNASSIGNED, expandable};
	gm_requests_change(reading->requests, address, (int64_t)bytes);
}

static struct gm_request_origin origin_of(const struct gm_event_record *event)
{
	return (struct gm_request_origin){event->time_ns, event->stack, event->site, event->key};
}

/* The segments at an address and after it are given back, to `bytes` behind it. */
static void end_segment(struct reading *reading, const struct gm_event_record *event,
			uint64_t bytes)
{
	uint64_t at = event->key, end = event->key + bytes;
	struct gm_tagged_range cut;

	if (!reading->releasing) {
		reading->before_release = reading->requests->reserved_bytes;
		reading->unclear_release = !reading->failing;
	}
	reading->releasing = true;
	while (at < end && gm_ranges_cut(&reading->segments, at, end, &cut)) {
		gm_requests_change(reading->requests, cut.start, -(int64_t)(cut.end - cut.start));
		at = cut.end;
	}
}

/*
 * Segments were given back and now `bytes` are taken, or something else happens (`bytes` 0): the
 * request found no memory, or the program had called empty_cache(). A request that was refused by a
 * memory fraction leaves no failed call, so that a larger reserve than ever then is unclear.
 */
static void judge_release(struct reading *reading, const struct gm_event_record *event,
			  uint64_t bytes)
{
	struct gm_requests *requests = reading->requests;

	if (!reading->releasing)
		return;
	reading->releasing = false;
	if (reading->unclear_release) {
		requests->unclear +=
			bytes && reading->before_release + bytes > requests->reserved_peak_bytes;
		gm_requests_add(requests, (struct gm_request){.op = GM_REQUEST_EMPTY_CACHE},
				origin_of(event));
		return;
	}
	if (bytes)
		gm_requests_retried(requests, reading->before_release, bytes);
}

/* ---- streams and pools ---- */

/* The largest hole of segments of a group that hold blocks of this size class. */
static uint64_t largest_hole(const struct reading *reading, uint32_t group, bool small)
{
	const struct gm_ranges *segments = &reading->segments, *blocks = &reading->blocks;
	uint64_t largest = 0;

	for (unsigned i = 0; i < segments->count; i++) {
		const struct gm_tagged_range *segment = &segments->ranges[i];
		uint64_t at = segment->start;

		if (reading->seen[segment->tag].group != group ||
		    (segment->end - segment->start == GM_TORCH_SMALL_SEGMENT_BYTES) != small)
			continue;
		for (unsigned b = gm_ranges_at(blocks, at);
		     b < blocks->count && blocks->ranges[b].start < segment->end; b++) {
			if (blocks->ranges[b].start - at > largest)
				largest = blocks->ranges[b].start - at;
			at = blocks->ranges[b].end;
		}
		if (segment->end - at > largest)
			largest = segment->end - at;
	}
	return largest;
}

/*
 * The group of a new segment: the first that had no hole for the block, since PyTorch takes memory
 * from the driver only then.
 */
static uint32_t choose_group(struct reading *reading, uint64_t bytes)
{
	bool small = bytes <= GM_TORCH_SMALL_BYTES;

	for (uint32_t group = 0; group < reading->groups; group++)
		if (largest_hole(reading, group, small) < bytes)
			return group;
	return reading->groups++;
}

/*
 * The group of an expandable segment: PyTorch reserves a range of addresses for each stream, pool
 * and size class, nine eighths of the device's memory, and maps its beginning first.
 */
static uint32_t range_of(struct reading *reading, uint64_t address)
{
	for (unsigned i = 0; i < reading->ranges_count; i++)
		if (address >= reading->ranges[i] &&
		    address - reading->ranges[i] < reading->range_bytes)
			return i;
	if (reading->ranges_count == reading->ranges_room) {
		reading->ranges_room = reading->ranges_room ? 2 * reading->ranges_room : 16;
		reading->ranges = gm_realloc(reading->ranges,
					     reading->ranges_room * sizeof(*reading->ranges));
	}
	reading->ranges[reading->ranges_count] = address;
	return reading->ranges_count++;
}

/* ---- blocks ---- */

/*
 * Returns by how much less a block may have been asked for: in segments of the large pool a rest of
 * up to 1 MiB is not split off, which shows where nothing is left behind the block.
 */
static uint16_t slack_of(const struct reading *reading, const struct gm_tagged_range *segment,
			 uint64_t end, uint64_t bytes)
{
	unsigned next = gm_ranges_at(&reading->blocks, end);
	uint64_t least = GM_TORCH_SMALL_BYTES + SLACK_UNIT;

	if (bytes <= GM_TORCH_SMALL_BYTES || reading->seen[segment->tag].expandable ||
	    (end < segment->end &&
	     (next == reading->blocks.count || reading->blocks.ranges[next].start != end)))
		return 0;
	if (bytes > least + GM_TORCH_SMALL_BYTES)
		least = bytes - GM_TORCH_SMALL_BYTES;
	return (uint16_t)((bytes - least) / SLACK_UNIT);
}

/*
 * The first segment of a group. A second group of one size class may be a graph's pool, and a
 * capture empties the cache.
 */
static void note_group(struct reading *reading, const struct gm_event_record *event, uint32_t group,
		       bool small)
{
	if (group == reading->first_group[small])
		return;
	if (reading->first_group[small] == UNASSIGNED) {
		reading->first_group[small] = group;
		return;
	}
	reading->requests->other_streams = true;
	if (group <= reading->last_group)
		return;
	reading->last_group = group;
	gm_requests_add(reading->requests, (struct gm_request){.op = GM_REQUEST_EMPTY_ASSUMED},
			origin_of(event));
}

/* The request of a block in a segment, by what segments and blocks tell. */
static void infer(struct reading *reading, const struct gm_event_record *event,
		  const struct gm_tagged_range *segment, struct gm_request *request)
{
	struct seen_segment *seen = &reading->seen[segment->tag];
	uint64_t bytes = event->bytes;

	if (seen->group == UNASSIGNED) {
		seen->group = seen->expandable ? range_of(reading, segment->start)
					       : choose_group(reading, bytes);
		note_group(reading, event, seen->group, bytes <= GM_TORCH_SMALL_BYTES);
	}
	request->slack = slack_of(reading, segment, event->key + bytes, bytes);
	request->pool = (uint16_t)gm_requests_pool(reading->requests, 0, seen->group);
	reading->requests->uncertain_sizes += request->slack > 0;
}

/* The same by what PyTorch's allocator traced. */
static void take_trace(struct reading *reading, const struct gm_event_record *event,
		       struct gm_request *request)
{
	reading->untold |= !reading->told;
	if (!reading->told)
		return;
	if (reading->asked == event->key && reading->asked_bytes <= event->bytes)
		request->bytes = reading->asked_bytes;
	reading->asked = 0;
	request->pool = (uint16_t)reading->pool;
	gm_requests_enter_pool(reading->requests, reading->pool, origin_of(event));
}

static void begin_block(struct reading *reading, const struct gm_event_record *event)
{
	struct gm_requests *requests = reading->requests;
	unsigned at = gm_ranges_at(&reading->segments, event->key);
	uint64_t end = event->key + event->bytes;
	struct gm_tagged_range *segment;
	struct gm_request request = {.op = GM_REQUEST_ALLOC, .bytes = event->bytes};

	judge_release(reading, event, 0);
	reading->failing = false;
	if (at == reading->segments.count)
		return;
	segment = &reading->segments.ranges[at];
	if (segment->start > event->key)
		return; /* of an allocator whose memory is not seen */
	if (!gm_ranges_add(&reading->blocks, event->key, end, requests->blocks)) {
		reading->untold = true;
		return;
	}
	if (reading->traced)
		take_trace(reading, event, &request);
	else
		infer(reading, event, segment, &request);
	request.block = requests->blocks++;
	gm_requests_add(requests, request, origin_of(event));
}

static void end_block(struct reading *reading, const struct gm_event_record *event)
{
	struct gm_tagged_range *block = gm_ranges_find(&reading->blocks, event->key);
	bool waits = reading->waits == event->key;

	judge_release(reading, event, 0);
	reading->waits = 0;
	if (!block || block->tag & PENDING)
		return;
	gm_requests_add(reading->requests,
			(struct gm_request){.op = waits ? GM_REQUEST_FREE_LATER : GM_REQUEST_FREE,
					    .block = (uint32_t)block->tag},
			origin_of(event));
	reading->requests->pending += waits;
	if (waits)
		block->tag |= PENDING;
	else
		gm_ranges_remove(&reading->blocks, event->key);
}

/* Streams no longer use a block that was freed. */
static void complete_free(struct reading *reading, const struct gm_event_record *event)
{
	struct gm_tagged_range *block = gm_ranges_find(&reading->blocks, event->key);

	if (!block || !(block->tag & PENDING))
		return;
	gm_requests_add(
		reading->requests,
		(struct gm_request){.op = GM_REQUEST_FREE_DONE, .block = (uint32_t)block->tag},
		origin_of(event));
	gm_ranges_remove(&reading->blocks, event->key);
}

static void trace_event(struct reading *reading, const struct gm_event_record *event)
{
	switch (event->op) {
	case GM_OP_TORCH_POOL:
		reading->told = event->key != GM_NO_BYTES;
		reading->pool =
			gm_requests_pool(reading->requests, (uint32_t)event->key, event->stream);
		return;
	case GM_OP_TORCH_REQUEST:
		reading->asked = event->key;
		reading->asked_bytes = event->bytes;
		return;
	case GM_OP_TORCH_FREE_WAITS:
		reading->waits = event->key;
		return;
	default:
		complete_free(reading, event);
	}
}

/*
 * An out-of-memory error that the program got: its record has the time of the last call that failed
 * for it, or of PyTorch's own report where a limit refused the request without a call.
 */
static bool refuse(struct reading *reading, const struct gm_event_record *event)
{
	const struct gm_doc *doc = reading->doc;
	uint64_t free_bytes;
	unsigned i = 0;

	while (i < doc->ooms_count && (doc->ooms[i].record.time_ns != event->time_ns ||
				       doc->ooms[i].record.device != event->device))
		i++;
	if (i == doc->ooms_count)
		return false;
	reading->releasing = false;
	reading->failing = false;
	/* handles that were made for the request before the failure are given back */
	free_bytes = doc->ooms[i].record.free_bytes;
	if (free_bytes != GM_NO_BYTES && reading->unmapped_bytes > 0)
		free_bytes += (uint64_t)reading->unmapped_bytes;
	gm_requests_refuse(reading->requests,
			   reading->told ? reading->pool
					 : gm_requests_pool(reading->requests, 0, 0),
			   doc->ooms[i].record.requested_bytes, free_bytes, origin_of(event));
	return true;
}

/* ---- events ---- */

static void driver_event(struct reading *reading, const struct gm_event_record *event)
{
	switch (event->op) {
	case GM_OP_ALLOC:
		if (event->space == GM_SPACE_HANDLE)
			reading->unmapped_bytes += (int64_t)event->bytes;
		if (event->space != GM_SPACE_POINTER || !of_torch(reading, event))
			return;
		judge_release(reading, event, event->bytes);
		add_segment(reading, event->key, event->bytes, false);
		return;
	case GM_OP_MAP:
		judge_release(reading, event, event->bytes);
		add_segment(reading, event->key, event->bytes, true);
		reading->expandable = true;
		reading->unmapped_bytes -= (int64_t)event->bytes;
		return;
	case GM_OP_FREE:
	case GM_OP_IMPLICIT_FREE:
		if (event->space == GM_SPACE_HANDLE)
			reading->unmapped_bytes -= (int64_t)event->bytes;
		if (event->space == GM_SPACE_POINTER &&
		    gm_ranges_find(&reading->segments, event->key))
			end_segment(reading, event, event->bytes);
		return;
	case GM_OP_UNMAP:
		reading->unmapped_bytes += (int64_t)event->bytes;
		end_segment(reading, event, event->bytes);
		return;
	case GM_OP_ALLOC_FAILED:
		if (!refuse(reading, event))
			reading->failing |= event->error == OUT_OF_MEMORY;
		return;
	default:
		return;
	}
}

static void read_event(const struct gm_event_record *event, void *data)
{
	struct reading *reading = data;

	if (event->device != reading->requests->device)
		return;
	if (event->op > GM_OP_LAUNCH)
		trace_event(reading, event);
	else if (event->level == GM_LEVEL_DRIVER && event->op != GM_OP_OOM)
		driver_event(reading, event);
	else if (event->level == GM_LEVEL_TORCH && event->op == GM_OP_ALLOC)
		begin_block(reading, event);
	else if (event->level == GM_LEVEL_TORCH &&
		 (event->op == GM_OP_FREE || event->op == GM_OP_IMPLICIT_FREE))
		end_block(reading, event);
	else if (event->level == GM_LEVEL_TORCH && event->op == GM_OP_OOM)
		refuse(reading, event);
}

bool gm_has_requests(struct gm_doc *doc)
{
	uint32_t records = gm_reader_count(doc->reader, GM_TABLE_EVENTS);

	return doc->torch &&
	       (doc->journal || (doc->complete && records && doc->header->event_head <= records));
}

/* The device whose blocks were handed out most often. */
static int busiest(const struct gm_doc *doc)
{
	uint64_t most = 0;
	int device = 0;

	for (unsigned i = 0; i < doc->torches_count; i++)
		if (doc->torches[i].allocations != GM_NO_BYTES &&
		    doc->torches[i].allocations > most) {
			most = doc->torches[i].allocations;
			device = doc->torches[i].device;
		}
	return device;
}

/* True if the program used streams of PyTorch's, which makes 32 of them at once. */
static bool streams_made(const struct gm_doc *doc, int device)
{
	uint64_t calls = 0;

	for (unsigned i = 0; i < doc->costs_count; i++)
		if (doc->costs[i].cost == GM_COST_STREAM && doc->costs[i].device == device)
			calls += doc->costs[i].calls;
	return calls >= TORCH_STREAMS;
}

/* True if the history says what PyTorch's allocator traced. */
static bool has_trace(const struct gm_doc *doc)
{
	return doc->journal && gm_journal_header(doc->journal)->oldest_version > GM_JOURNAL_OLDEST;
}

/* Reads the history; false if it was to be `traced` and does not tell of each block. */
static bool read_history(struct gm_requests *requests, struct gm_doc *doc, bool traced)
{
	struct reading reading = {.requests = requests,
				  .doc = doc,
				  .traced = traced,
				  .first_group = {UNASSIGNED, UNASSIGNED}};
	const struct gm_device *device = gm_doc_device(doc, requests->device);
	uint64_t total = device ? gm_device_limit(device) : GM_NO_BYTES;

	reading.range_bytes = total == GM_NO_BYTES ? UNKNOWN_RANGE : total + total / 8;
	requests->streams_unknown = !traced;
	(traced ? gm_history_each_traced : gm_history_each)(doc, read_event, &reading);
	if (!traced)
		requests->other_streams |= streams_made(doc, requests->device);
	if (reading.expandable && !*requests->conf)
		requests->conf = "expandable_segments:True";
	gm_ranges_free(&reading.segments);
	gm_ranges_free(&reading.blocks);
	free(reading.seen);
	free(reading.ranges);
	return !reading.untold;
}

bool gm_requests_from_events(struct gm_requests *requests, struct gm_doc *doc, int device)
{
	const struct gm_requests empty = {.most_limit_bytes = UINT64_MAX,
					  .device = device < 0 ? busiest(doc) : device,
					  .conf = doc->allocator_settings ? doc->allocator_settings
									  : ""};

	*requests = empty;
	if (!gm_has_requests(doc))
		return false;
	if (!has_trace(doc) || !read_history(requests, doc, true)) {
		gm_requests_free(requests);
		*requests = empty;
		read_history(requests, doc, false);
	}
	if (!requests->gap)
		requests->gap = gm_history_gap(doc);
	if (doc->ooms_lost && !requests->gap)
		requests->gap = "more requests were refused than the file tells of";
	return true;
}
