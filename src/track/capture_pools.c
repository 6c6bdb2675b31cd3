/*
 * Captures and their private pools. A capture has a record from its beginning on; what is known of
 * captures under way, of graphs that can be instantiated and of the segments of pools is in private
 * memory.
 */
#include "track/capture_pools.h"
#include "account/kinds.h"
#include "account/torch_record.h"
#include "track/thread_id.h"
#include "track/update.h"

#include <string.h>

#define MOST_OPEN   64u
#define MOST_GRAPHS 256u /* captured latest */

struct open_capture {
	uint64_t stream;
	uint32_t thread, record;
	bool global;
};

struct segment {
	uint64_t address, bytes;
	uint32_t capture;
};

static struct {
	struct open_capture open[MOST_OPEN]; /* gm_track.captures of them, the latest last */
	struct {
		uint64_t graph; /* 0: none */
		uint32_t capture;
	} graphs[MOST_GRAPHS];
	unsigned next_graph; /* to be replaced */
	struct segment *segments;
	uint32_t count, capacity;
	uint32_t latest; /* the segment that a block was last found in */
} pools;

void gm_capture_pools_reset(void)
{
	memset(&pools, 0, sizeof(pools)); /* the arena was freed as a whole */
	gm_track.captures = 0;
}

static struct gm_capture_record *record_at(uint32_t index)
{
	return gm_store_record(GM_TABLE_CAPTURES, index);
}

/* Returns the index of a new record, or of the last one that there may be; GM_NONE: no room. */
static uint32_t new_record(const struct gm_event *event)
{
	uint32_t count = gm_file->tables[GM_TABLE_CAPTURES].count, index = GM_CAPTURES_KEPT - 1;
	struct gm_capture_record *record = count < GM_CAPTURES_KEPT
						   ? gm_store_append(GM_TABLE_CAPTURES, 1, &index)
						   : record_at(index);

	if (!record)
		return GM_NONE;
	if (count < GM_CAPTURES_KEPT) {
		record->device = event->device;
		record->stack = event->stack;
		record->pool = index;
	}
	record->captures++;
	record->time_ns = gm_track.now_ns;
	gm_store_publish(GM_TABLE_CAPTURES);
	return index;
}

static void close_capture(uint32_t at)
{
	memmove(&pools.open[at], &pools.open[at + 1],
		(--gm_track.captures - at) * sizeof(pools.open[0]));
}

/* Returns the number of the capture of a stream among those under way, MOST_OPEN: none. */
static uint32_t find_open(uint64_t stream)
{
	uint32_t i;

	for (i = 0; i < gm_track.captures; i++)
		if (pools.open[i].stream == stream)
			return i;
	return MOST_OPEN;
}

void gm_track_capture_begin(const struct gm_event *event, bool global)
{
	struct open_capture opened = {.stream = event->stream, .global = global};
	uint32_t old;

	if (!gm_file || event->device < 0)
		return;
	gm_update_begin();
	old = find_open(event->stream);
	if (old < MOST_OPEN) /* it ended with its stream */
		close_capture(old);
	opened.thread = gm_calling_thread();
	opened.record = gm_track.captures < MOST_OPEN ? new_record(event) : GM_NONE;
	if (opened.record != GM_NONE)
		pools.open[gm_track.captures++] = opened;
	gm_update_end();
}

void gm_track_capture_end(uint64_t stream, uint64_t graph)
{
	uint32_t ended;

	if (!gm_file)
		return;
	gm_update_begin();
	ended = find_open(stream);
	if (ended < MOST_OPEN) {
		uint32_t record = pools.open[ended].record;

		close_capture(ended);
		if (graph) {
			unsigned next = pools.next_graph++ % MOST_GRAPHS;

			record_at(record)->graphs++;
			pools.graphs[next].graph = graph;
			pools.graphs[next].capture = record;
		}
	}
	gm_update_end();
}

/* ---- graphs ---- */

uint32_t gm_capture_of_graph(uint64_t graph)
{
	unsigned i;

	for (i = 1; graph && i <= MOST_GRAPHS; i++) {
		unsigned at = (pools.next_graph - i) % MOST_GRAPHS;

		if (pools.graphs[at].graph == graph)
			return pools.graphs[at].capture;
	}
	return GM_NONE;
}

void gm_track_capture_graph_destroyed(uint64_t graph)
{
	unsigned i;

	if (!gm_file || !graph)
		return;
	gm_update_begin();
	for (i = 0; i < MOST_GRAPHS; i++)
		if (pools.graphs[i].graph == graph)
			pools.graphs[i].graph = 0;
	gm_update_end();
}

void gm_capture_executable(uint32_t capture, int object, uint64_t nodes, int64_t bytes)
{
	struct gm_capture_record *record = record_at(capture);

	record->executable_bytes += bytes;
	record->nodes += nodes;
	record->made += object > 0;
	if (object > 0)
		record->live++;
	else
		record->live -= object < 0 && record->live > 0;
}

/* ---- memory ---- */

/* Returns the capture that what this thread takes is for: the latest that can be; GM_NONE. */
static uint32_t capture_of_thread(bool relaxed)
{
	uint32_t i, thread = gm_calling_thread();

	for (i = gm_track.captures; i--;)
		if (pools.open[i].thread == thread)
			return pools.open[i].record;
	for (i = gm_track.captures; i--;)
		if (relaxed || pools.open[i].global)
			return pools.open[i].record;
	return GM_NONE;
}

static void add_segment(const struct gm_alloc_record *record, uint32_t capture)
{
	uint32_t capacity = pools.capacity ? 2 * pools.capacity : 64;
	struct segment *larger;

	if (pools.count == pools.capacity) {
		larger = gm_arena_alloc(&gm_track_arena, capacity * sizeof(*larger));
		if (!larger)
			return; /* captures that use it are then told as pools of their own */
		if (pools.count)
			memcpy(larger, pools.segments, pools.count * sizeof(*larger));
		gm_arena_free(&gm_track_arena, pools.segments, pools.capacity * sizeof(*larger));
		pools.segments = larger;
		pools.capacity = capacity;
	}
	pools.segments[pools.count++] = (struct segment){
		.address = record->key, .bytes = record->bytes, .capture = capture};
}

void gm_capture_take(struct gm_alloc_record *record)
{
	uint32_t capture = gm_track.captures
				   ? capture_of_thread(record->flags & GM_ALLOC_RELAXED)
				   : GM_NONE;

	if (capture == GM_NONE)
		return;
	record->capture = capture + 1;
	if (!gm_torch_reserves(gm_torch_part(record)))
		return;
	record_at(capture)->taken_bytes += record->bytes;
	record_at(capture)->device = record->device;
	add_segment(record, capture);
}

void gm_capture_give(const struct gm_alloc_record *record)
{
	uint32_t i;

	for (i = 0; record->capture && i < pools.count; i++)
		if (pools.segments[i].address == record->key) {
			pools.segments[i] = pools.segments[--pools.count];
			return;
		}
}

static bool lies_in(uint32_t segment, uint64_t address)
{
	return segment < pools.count &&
	       address - pools.segments[segment].address < pools.segments[segment].bytes;
}

/* The pools of two captures are one. */
static void join(uint32_t one, uint32_t other)
{
	uint32_t first = record_at(one)->pool, second = record_at(other)->pool, i;
	uint32_t count = gm_file->tables[GM_TABLE_CAPTURES].count;
	uint32_t root = first < second ? first : second;

	for (i = 0; first != second && i < count; i++)
		if (record_at(i)->pool == first || record_at(i)->pool == second)
			record_at(i)->pool = root;
}

void gm_capture_block(uint64_t address)
{
	uint32_t i = pools.latest, capture;

	if (!lies_in(i, address))
		for (i = 0; i < pools.count && !lies_in(i, address); i++)
			;
	if (i >= pools.count)
		return;
	pools.latest = i;
	capture = capture_of_thread(true);
	if (capture != GM_NONE)
		join(capture, pools.segments[i].capture);
}
