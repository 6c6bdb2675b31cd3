/*
 * Device memory that calls take without saying so, as sums for each device, kind of cost and stack
 * or calling library.
 */
#include "track/costs.h"
#include "track/capture_pools.h"
#include "track/levels.h"
#include "track/update.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(bytes) gm_arena_alloc(&gm_track_arena, bytes)
#define uthash_free(memory, bytes) gm_arena_free(&gm_track_arena, memory, bytes)
#include <uthash.h>

#define COSTS_KEPT 1024u

static struct object *objects;
static int64_t sums[GM_SLOTS]; /* of all costs of a device (atomic) */
static bool gone[GM_SLOTS]; /* the device's contexts ended; the records follow at the next cost */

void gm_costs_reset(void)
{
	unsigned i;

	objects = NULL; /* the arena was freed as a whole */
	for (i = 0; i < GM_SLOTS; i++) {
		sums[i] = 0;
		gone[i] = false;
	}
}

void gm_costs_end(int device)
{
	__atomic_store_n(&sums[gm_slot(device)], 0, __ATOMIC_RELAXED);
	gone[gm_slot(device)] = true;
}

/*
 * Sets the costs of a device to 0. This is done at the next cost and not when its contexts end, so
 * that the report of a program that resets the device before it exits shows what they were.
 */
static void start_over(int device)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_COSTS].count;

	for (index = 0; index < count; index++) {
		struct gm_cost_record *record = gm_store_record(GM_TABLE_COSTS, index);

		if (record->device == device)
			record->bytes = 0, record->live = 0;
	}
	gone[gm_slot(device)] = false;
}

int64_t gm_track_explained_bytes(int device)
{
	return (int64_t)gm_track_physical_bytes(device) +
	       __atomic_load_n(&sums[gm_slot(device)], __ATOMIC_RELAXED);
}

uint64_t gm_track_code_bytes(int device)
{
	int64_t sum = __atomic_load_n(&sums[gm_slot(device)], __ATOMIC_RELAXED);

	return sum > 0 ? (uint64_t)sum : 0;
}

int64_t gm_cost_bytes(int device, enum gm_cost cost)
{
	uint32_t index, records = gm_file->tables[GM_TABLE_COSTS].count;
	int64_t sum = 0;

	for (index = 0; index < records && !gone[gm_slot(device)]; index++) {
		const struct gm_cost_record *record = gm_store_record(GM_TABLE_COSTS, index);

		if (record->device == device && record->cost == cost)
			sum += record->bytes;
	}
	return sum;
}

/* ---- objects: by whose record each was made ---- */

struct object {
	uint64_t key[2]; /* handle and kind of cost */
	uint32_t record;
	uint32_t capture; /* that the graph came of; GM_NONE */
	UT_hash_handle hh;
};

static struct object *find_object(const struct gm_cost_event *event)
{
	uint64_t key[2] = {event->handle, event->cost};
	struct object *object;

	HASH_FIND(hh, objects, key, sizeof(key), object);
	return object;
}

static void forget_object(struct object *object)
{
	HASH_DEL(objects, object);
	gm_arena_free(&gm_track_arena, object, sizeof(*object));
}

/*
 * Without memory for it, the end of the object is counted in the record of the call that ends it.
 */
static void remember_object(const struct gm_cost_event *event, uint32_t record, uint32_t capture)
{
	struct object *object = find_object(event);

	if (object) /* its end was missed */
		forget_object(object);
	object = gm_arena_alloc(&gm_track_arena, sizeof(*object));
	if (!object)
		return;
	memset(object, 0, sizeof(*object));
	object->key[0] = event->handle;
	object->key[1] = event->cost;
	object->record = record;
	object->capture = capture;
	HASH_ADD(hh, objects, key, sizeof(object->key), object);
}

/* ---- records ---- */

/*
 * Objects have a record for each stack that made some, so that the report can name the line; other
 * costs one for each library that called.
 */
static bool same_record(const struct gm_cost_record *record, const struct gm_cost_event *event)
{
	return record->device == event->device && record->cost == event->cost &&
	       (event->object > 0 || event->of_objects
			? record->calls && record->stack == event->stack
			: !record->calls && record->module == event->module);
}

/* Past COSTS_KEPT records the first of the same kind has to do. */
static uint32_t find_record(const struct gm_cost_event *event, bool any)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_COSTS].count;

	for (index = 0; index < count; index++) {
		const struct gm_cost_record *record = gm_store_record(GM_TABLE_COSTS, index);

		if (any ? record->device == event->device && record->cost == event->cost
			: same_record(record, event))
			return index;
	}
	return GM_NONE;
}

static struct gm_cost_record *cost_record(const struct gm_cost_event *event, uint32_t *index)
{
	const struct object *object =
		event->object < 0 && event->handle ? find_object(event) : NULL;
	struct gm_cost_record *record;

	*index = object ? object->record : find_record(event, false);
	if (*index == GM_NONE && gm_file->tables[GM_TABLE_COSTS].count >= COSTS_KEPT)
		*index = find_record(event, true);
	if (*index != GM_NONE)
		return gm_store_record(GM_TABLE_COSTS, *index);
	record = gm_store_append(GM_TABLE_COSTS, 1, index);
	if (record) {
		record->device = (int16_t)event->device;
		record->cost = (uint8_t)event->cost;
		record->module = event->module;
		record->stack = GM_NONE;
	}
	return record;
}

static void count_made(struct gm_cost_record *record, const struct gm_cost_event *event)
{
	unsigned power = 63 - (unsigned)__builtin_clzll(++record->calls);

	if (power < GM_COST_TIMES && record->calls == 1ull << power)
		record->times_ns[power] = gm_track.now_ns;
	record->live++;
	record->live_then = record->live < UINT32_MAX ? (uint32_t)record->live : UINT32_MAX;
	record->nodes += event->nodes;
	record->last_ns = gm_track.now_ns;
	record->stack = event->stack;
}

static void count(struct gm_cost_record *record, const struct gm_cost_event *event)
{
	if (gone[gm_slot(event->device)])
		start_over(event->device);
	if (event->object > 0)
		count_made(record, event);
	else if (event->object < 0)
		record->ends++, record->live -= record->live > 0;
	else if (!record->calls)
		record->stack = event->stack;
	record->bytes += event->bytes;
	__atomic_fetch_add(&sums[gm_slot(event->device)], event->bytes, __ATOMIC_RELAXED);
	gm_store_publish(GM_TABLE_COSTS);
}

static void record_cost(const struct gm_cost_event *event)
{
	struct object *object = event->object < 0 && event->handle ? find_object(event) : NULL;
	uint32_t capture = object ? object->capture : gm_capture_of_graph(event->graph), index;
	struct gm_cost_record *record = cost_record(event, &index);

	if (!record)
		return;
	count(record, event);
	if (capture != GM_NONE)
		gm_capture_executable(capture, event->object, event->nodes, event->bytes);
	if (event->object > 0 && event->handle)
		remember_object(event, index, capture);
	if (object)
		forget_object(object);
}

bool gm_track_cost(const struct gm_cost_event *event)
{
	bool same;

	if (!gm_file)
		return true;
	gm_update_begin();
	same = !event->bytes || gm_track_explained_bytes(event->device) == event->explained_bytes;
	if (same)
		record_cost(event);
	gm_update_end();
	return same;
}

void gm_track_limits(uint64_t stack_bytes, uint64_t heap_bytes)
{
	if (!gm_file)
		return;
	gm_update_begin();
	if (stack_bytes != GM_NO_BYTES)
		gm_file->stack_limit_bytes = stack_bytes;
	if (heap_bytes != GM_NO_BYTES)
		gm_file->heap_limit_bytes = heap_bytes;
	gm_update_end();
}
