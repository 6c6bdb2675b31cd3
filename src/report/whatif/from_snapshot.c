/*
 * From a snapshot's events to requests (from_snapshot.h).
 */
#include "report/whatif/from_snapshot.h"
#include "account/torch_record.h"
#include "report/import/import.h"
#include "report/import/replay_sets.h"
#include "report/support/numbering.h"
#include <stdlib.h>
#include <string.h>

struct reading {
	struct gm_requests *requests;
	struct gm_zone *zone;
	const struct gm_snapshot *snapshot;
	const struct gm_snapshot_trace *trace;
	uint64_t first_us;
	struct gm_sets sets; /* segments and blocks as the events pass */
	uint32_t *blocks;    /* numbers by tag of sets.lives */
	unsigned blocks_room;
	const struct gm_snapshot_segment **final; /* of the device, in order of address */
	unsigned final_count;
	int device;
	uint64_t until_ns;
	bool found;
};

/* ---- pools ---- */

/* The segment of the snapshot's end that holds an address; NULL. */
static const struct gm_snapshot_segment *final_segment(const struct reading *reading,
						       uint64_t address)
{
	unsigned low = 0, high = reading->final_count;
	const struct gm_snapshot_segment *segment;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (reading->final[middle]->start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	segment = low ? reading->final[low - 1] : NULL;
	return segment && address - segment->start < segment->bytes ? segment : NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct gm_snapshot_segment *const *x = a, *const *y = b;

	return (*x)->start < (*y)->start ? -1 : (*x)->start > (*y)->start;
}

static void sort_final(struct reading *reading)
{
	const struct gm_snapshot *snapshot = reading->snapshot;

	reading->final = gm_zone_alloc(reading->zone, snapshot->segments_count,
				       sizeof(const struct gm_snapshot_segment *));
	for (unsigned i = 0; i < snapshot->segments_count; i++)
		if (snapshot->segments[i].device == reading->device)
			reading->final[reading->final_count++] = &snapshot->segments[i];
	if (reading->final_count)
		qsort(reading->final, reading->final_count, sizeof(*reading->final), by_start);
}

struct place {
	unsigned pool; /* in requests->pools */
	bool small;
};

/*
 * The pool of a segment that begins at `start` and is of that stream. One that is gone at the end
 * counts as the allocator's own.
 */
static struct place place_of(struct reading *reading, uint64_t start, uint64_t bytes,
			     uint64_t stream)
{
	const struct gm_snapshot_segment *segment = final_segment(reading, start);
	struct place place = {.small = bytes == GM_TORCH_SMALL_SEGMENT_BYTES};
	uint32_t pool = 0;

	if (segment && segment->stream == stream) {
		pool = (uint32_t)segment->pool;
		place.small = segment->small || (place.small && !segment->expandable);
	}
	place.pool = gm_requests_pool(reading->requests, pool, stream);
	return place;
}

/* Returns the pool of a block, by the segment that the block lies in. */
static unsigned pool_of_block(struct reading *reading, uint64_t address, uint64_t stream)
{
	const struct gm_ranges *segments = &reading->sets.segments;
	unsigned at = gm_ranges_at(segments, address);
	uint64_t start = address;

	if (at < segments->count && segments->ranges[at].start <= address)
		start = segments->ranges[at].start;
	return place_of(reading, start, 0, stream).pool;
}

/* ---- the beginning ---- */

static void name_block(struct reading *reading, uint64_t tag, uint32_t number)
{
	unsigned before = reading->blocks_room;

	while (tag >= reading->blocks_room)
		reading->blocks_room = reading->blocks_room ? 2 * reading->blocks_room : 1024;
	if (reading->blocks_room > before) {
		reading->blocks = gm_realloc(reading->blocks,
					     reading->blocks_room * sizeof(*reading->blocks));
		for (unsigned i = before; i < reading->blocks_room; i++)
			reading->blocks[i] = GM_NONE;
	}
	reading->blocks[tag] = number;
}

/* The number of a block, GM_NONE for one that lies in no segment. */
static uint32_t number_of(const struct reading *reading, uint64_t tag)
{
	return tag < reading->blocks_room ? reading->blocks[tag] : GM_NONE;
}

static void add_found(struct gm_requests *requests, struct gm_model_found found, uint32_t block)
{
	if (requests->found_count == requests->found_room) {
		requests->found_room = requests->found_room ? 2 * requests->found_room : 256;
		requests->found = gm_realloc(requests->found,
					     requests->found_room * sizeof(*requests->found));
		requests->found_blocks =
			gm_realloc(requests->found_blocks,
				   requests->found_room * sizeof(*requests->found_blocks));
	}
	requests->found[requests->found_count] = found;
	requests->found_blocks[requests->found_count++] = block;
}

/*
 * Returns the bytes of a block that was there at the beginning. The history says how much was asked
 * for; a rest of up to 1 MiB behind the block is its own, for the large pool leaves no such rest
 * free.
 */
static uint64_t found_bytes(struct gm_tagged_range *block, uint64_t next, bool fine)
{
	if (!fine && next - block->end <= GM_TORCH_SMALL_BYTES)
		block->end = next;
	return block->end - block->start;
}

/* The blocks from `start` to `end`, and what is free between them. */
static void find_blocks(struct reading *reading, uint64_t start, uint64_t end, bool fine)
{
	struct gm_requests *requests = reading->requests;
	struct gm_ranges *blocks = &reading->sets.blocks;

	for (unsigned at = gm_ranges_at(blocks, start);
	     at < blocks->count && blocks->ranges[at].start < end; at++) {
		struct gm_tagged_range *range = &blocks->ranges[at];
		uint64_t next = at + 1 < blocks->count && blocks->ranges[at + 1].start < end
					? blocks->ranges[at + 1].start
					: end;

		if (range->start > start)
			add_found(requests, (struct gm_model_found){.bytes = range->start - start},
				  0);
		name_block(reading, range->tag, requests->blocks);
		add_found(
			requests,
			(struct gm_model_found){.bytes = found_bytes(range, next, fine),
						.used = true,
						.pending = reading->sets.lives[range->tag].pending},
			requests->blocks++);
		start = range->end;
	}
	if (end > start)
		add_found(requests, (struct gm_model_found){.bytes = end - start}, 0);
}

static struct gm_found_segment *add_segment(struct gm_requests *requests)
{
	if (requests->segments_count == requests->segments_room) {
		requests->segments_room =
			requests->segments_room ? 2 * requests->segments_room : 64;
		requests->segments = gm_realloc(
			requests->segments, requests->segments_room * sizeof(*requests->segments));
	}
	return &requests->segments[requests->segments_count++];
}

/* Mappings of one stream that follow each other are one expandable segment, as far as is known. */
static void find_segments(struct reading *reading)
{
	struct gm_requests *requests = reading->requests;
	const struct gm_ranges *segments = &reading->sets.segments;

	for (unsigned i = 0; i < segments->count; i++) {
		const struct gm_tagged_range *range = &segments->ranges[i];
		const struct gm_replayed_allocation *live = &reading->sets.lives[range->tag];
		struct gm_found_segment *segment = add_segment(requests);
		struct place place =
			place_of(reading, range->start, range->end - range->start, live->stream);
		uint64_t end = range->end;

		while (live->expandable && i + 1 < segments->count &&
		       segments->ranges[i + 1].start == end)
			end = segments->ranges[++i].end;
		*segment = (struct gm_found_segment){.address = range->start,
						     .base = range->start,
						     .pool = place.pool,
						     .small = place.small,
						     .expandable = live->expandable,
						     .first = requests->found_count};
		find_blocks(reading, range->start, end, place.small || live->expandable);
		if (live->expandable)
			add_found(requests,
				  (struct gm_model_found){.bytes = 20ull << 34, .unmapped = true},
				  0);
		segment->count = requests->found_count - segment->first;
		requests->reserved_bytes += end - range->start;
	}
	requests->reserved_peak_bytes = requests->reserved_bytes;
	requests->middle = requests->segments_count > 0;
}

/* ---- events ---- */

static struct gm_request_origin origin_of(const struct reading *reading,
					  const struct gm_snapshot_event *event)
{
	uint64_t us = event->time_us > reading->first_us ? event->time_us - reading->first_us : 0;

	return (struct gm_request_origin){us * 1000, event->stack, GM_NONE, event->start};
}

static void add(struct reading *reading, const struct gm_snapshot_event *event,
		struct gm_request request)
{
	gm_requests_add(reading->requests, request, origin_of(reading, event));
}

static bool follow_alloc(struct reading *reading, const struct gm_snapshot_event *event)
{
	struct gm_sets *sets = &reading->sets;
	unsigned pool = pool_of_block(reading, event->start, event->stream);
	uint64_t bytes = gm_sets_block_bytes(sets, event->start, event->bytes);
	uint64_t tag = gm_sets_new(sets, event->stack, event->stream, false);

	/* the block ends elsewhere if PyTorch rounds otherwise; only its beginning counts */
	if (!bytes || !gm_ranges_add(&sets->blocks, event->start, event->start + bytes, tag))
		return false;
	name_block(reading, tag, reading->requests->blocks);
	gm_requests_enter_pool(reading->requests, pool, origin_of(reading, event));
	add(reading, event,
	    (struct gm_request){.op = GM_REQUEST_ALLOC,
				.bytes = event->bytes,
				.block = reading->requests->blocks++,
				.pool = (uint16_t)pool});
	return true;
}

/* A free, with the event that completes it if that follows at once: then `*i` moves there. */
static bool follow_free(struct reading *reading, const struct gm_snapshot_event *event, unsigned *i)
{
	struct gm_sets *sets = &reading->sets;
	struct gm_tagged_range *range = gm_ranges_find(&sets->blocks, event->start);
	const struct gm_snapshot_event *next = *i + 1 < reading->trace->count ? event + 1 : NULL;
	struct gm_request request = {.op = GM_REQUEST_FREE_LATER};

	if (!range || sets->lives[range->tag].pending)
		return false;
	request.block = number_of(reading, range->tag);
	if (request.block == GM_NONE)
		return false;
	if (next && next->action == GM_ACTION_FREE_COMPLETED && next->start == event->start) {
		++*i;
		request.op = GM_REQUEST_FREE;
		gm_ranges_remove(&sets->blocks, event->start);
	} else {
		sets->lives[range->tag].pending = true;
		reading->requests->pending++;
	}
	add(reading, event, request);
	return true;
}

static bool follow_completed(struct reading *reading, const struct gm_snapshot_event *event)
{
	struct gm_tagged_range *range = gm_ranges_find(&reading->sets.blocks, event->start);
	struct gm_request request = {.op = GM_REQUEST_FREE_DONE};

	if (!range || !reading->sets.lives[range->tag].pending)
		return false;
	request.block = number_of(reading, range->tag);
	if (request.block == GM_NONE)
		return false;
	add(reading, event, request);
	return gm_ranges_remove(&reading->sets.blocks, event->start);
}

static bool follow_segment(struct reading *reading, const struct gm_snapshot_event *event)
{
	struct gm_sets *sets = &reading->sets;
	uint64_t at = event->start, end = event->start + event->bytes;
	bool expandable = event->action == GM_ACTION_SEGMENT_MAP;
	struct gm_tagged_range cut;

	if (expandable || event->action == GM_ACTION_SEGMENT_ALLOC) {
		gm_requests_change(reading->requests, event->start, (int64_t)event->bytes);
		return gm_ranges_add(&sets->segments, at, end,
				     gm_sets_new(sets, event->stack, event->stream, expandable));
	}
	gm_requests_change(reading->requests, event->start, -(int64_t)event->bytes);
	for (; at < end; at = cut.end)
		if (!gm_ranges_cut(&sets->segments, at, end, &cut))
			return false;
	return true;
}

static bool gives_back(const struct gm_snapshot_event *event)
{
	return event->action == GM_ACTION_SEGMENT_FREE || event->action == GM_ACTION_SEGMENT_UNMAP;
}

static bool takes(const struct gm_snapshot_event *event)
{
	return event->action == GM_ACTION_SEGMENT_ALLOC || event->action == GM_ACTION_SEGMENT_MAP;
}

/*
 * Finds the reason why segments from event `i` on were given back: because a request found no
 * memory, which then goes on with the same stack, or because the program called empty_cache().
 * Without stacks, a request that the run had headroom for before cannot have been the reason.
 */
static bool by_request(struct reading *reading, unsigned i,
		       const struct gm_snapshot_event **request)
{
	const struct gm_snapshot_trace *trace = reading->trace;
	const struct gm_snapshot_event *first = &trace->events[i], *next;

	while (i < trace->count && (gives_back(&trace->events[i]) ||
				    trace->events[i].action == GM_ACTION_FREE_COMPLETED))
		i++;
	next = i < trace->count ? &trace->events[i] : NULL;
	*request = next;
	if (!next || !(takes(next) || next->action == GM_ACTION_OOM))
		return false;
	if (next->stack != GM_NONE || first->stack != GM_NONE)
		return next->stack == first->stack;
	if (reading->requests->reserved_bytes + next->bytes <=
	    reading->requests->reserved_peak_bytes)
		return false;
	reading->requests->unclear++;
	return true;
}

/* The first of events that give segments back. */
static void note_release(struct reading *reading, unsigned i)
{
	const struct gm_snapshot_event *request, *event = &reading->trace->events[i];
	uint64_t before = reading->requests->reserved_bytes, given = 0;

	if (!by_request(reading, i, &request)) {
		add(reading, event, (struct gm_request){.op = GM_REQUEST_EMPTY_CACHE});
		return;
	}
	if (!takes(request))
		return;
	for (; event < request; event++)
		given += gives_back(event) ? event->bytes : 0;
	reading->requests->reserved_bytes -= given;
	gm_requests_retried(reading->requests, before, request->bytes);
	reading->requests->reserved_bytes += given;
}

static void follow_oom(struct reading *reading, const struct gm_snapshot_event *event)
{
	gm_requests_refuse(reading->requests, gm_requests_pool(reading->requests, 0, event->stream),
			   event->bytes, gm_torch_segment_size(event->bytes),
			   event->start == GM_NO_BYTES ? UINT64_MAX : event->start,
			   origin_of(reading, event));
}

static bool follow_event(struct reading *reading, unsigned *i, bool *releasing)
{
	const struct gm_snapshot_event *event = &reading->trace->events[*i];

	if (gives_back(event)) {
		if (!*releasing)
			note_release(reading, *i);
		*releasing = true;
		return follow_segment(reading, event);
	}
	*releasing = *releasing && event->action == GM_ACTION_FREE_COMPLETED;
	switch (event->action) {
	case GM_ACTION_ALLOC:
		return follow_alloc(reading, event);
	case GM_ACTION_FREE_REQUESTED:
		return follow_free(reading, event, i);
	case GM_ACTION_FREE_COMPLETED:
		return follow_completed(reading, event);
	case GM_ACTION_OOM:
		follow_oom(reading, event);
		return true;
	default:
		return follow_segment(reading, event);
	}
}

static void follow(struct reading *reading)
{
	bool releasing = false;

	for (unsigned i = 0; i < reading->trace->count; i++) {
		unsigned number = i;

		if (origin_of(reading, &reading->trace->events[i]).time_ns > reading->until_ns)
			return;
		if (follow_event(reading, &i, &releasing))
			continue;
		reading->requests->gap = gm_zone_printf(
			reading->zone,
			"event %u of the snapshot does not follow from those before it; what comes "
			"after it is left out",
			number);
		return;
	}
}

static void use(const struct gm_snapshot *snapshot, uint64_t first_us, void *data)
{
	struct reading *reading = data;
	const struct gm_value *conf = gm_value_get(snapshot->settings, "PYTORCH_CUDA_ALLOC_CONF");
	unsigned most = 0;

	for (unsigned d = 0; d < snapshot->traces_count; d++)
		if (snapshot->traces[d].count > most &&
		    (reading->device < 0 || reading->device == (int)d)) {
			most = snapshot->traces[d].count;
			reading->trace = &snapshot->traces[d];
			reading->requests->device = (int)d;
		}
	if (!most)
		return;
	reading->found = true;
	reading->device = reading->requests->device;
	reading->snapshot = snapshot;
	reading->first_us = first_us;
	if (conf && conf->type == GM_VALUE_TEXT)
		reading->requests->conf = gm_zone_strndup(reading->zone, conf->text, conf->count);
	sort_final(reading);
	gm_sets_load(&reading->sets, snapshot, reading->device);
	for (unsigned i = reading->trace->count; i-- > 0;)
		if (!gm_sets_undo(&reading->sets, &reading->trace->events[i])) {
			reading->requests->gap =
				"the snapshot's history does not lead to its state, so that what "
				"was there before it is not known";
			gm_sets_free(&reading->sets);
			memset(&reading->sets, 0, sizeof(reading->sets));
			return;
		}
	find_segments(reading);
	follow(reading);
	gm_sets_free(&reading->sets);
	free(reading->blocks);
}

bool gm_requests_from_snapshot(struct gm_requests *requests, struct gm_zone *zone, const char *path,
			       int device, uint64_t until_ns)
{
	struct reading reading = {
		.requests = requests, .zone = zone, .device = device, .until_ns = until_ns};

	*requests = (struct gm_requests){.most_limit_bytes = UINT64_MAX, .by_torch = true};
	return gm_import_visit(path, use, &reading) && reading.found;
}
