/*
 * Device memory that calls take without saying so, as sums for each device, kind of cost and
 * calling library.
 */
#include "track/costs.h"
#include "track/levels.h"
#include "track/update.h"

#define COSTS_KEPT 1024u

static int64_t sums[GM_SLOTS]; /* of all costs of a device (atomic) */
static bool gone[GM_SLOTS]; /* the device's contexts ended; the records follow at the next cost */

void gm_costs_reset(void)
{
	unsigned i;

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

static struct gm_cost_record *cost_record(const struct gm_cost_event *event)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_COSTS].count;
	struct gm_cost_record *record;

	for (index = 0; index < count; index++) {
		record = gm_store_record(GM_TABLE_COSTS, index);
		if (record->device == event->device && record->cost == event->cost &&
		    (record->module == event->module || count >= COSTS_KEPT))
			return record;
	}
	record = gm_store_append(GM_TABLE_COSTS, 1, &index);
	if (record) {
		record->device = (int16_t)event->device;
		record->cost = (uint8_t)event->cost;
		record->module = event->module;
		record->stack = GM_NONE;
	}
	return record;
}

static void count(struct gm_cost_record *record, const struct gm_cost_event *event)
{
	if (gone[gm_slot(event->device)])
		start_over(event->device);
	if (event->object > 0)
		record->calls++, record->live++;
	else if (event->object < 0)
		record->ends++, record->live -= record->live > 0;
	record->bytes += event->bytes;
	record->stack = event->stack;
	__atomic_fetch_add(&sums[gm_slot(event->device)], event->bytes, __ATOMIC_RELAXED);
	gm_store_publish(GM_TABLE_COSTS);
}

bool gm_track_cost(const struct gm_cost_event *event)
{
	struct gm_cost_record *record;
	bool same;

	if (!gm_file)
		return true;
	gm_update_begin();
	same = !event->bytes || gm_track_explained_bytes(event->device) == event->explained_bytes;
	record = same ? cost_record(event) : NULL;
	if (record)
		count(record, event);
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
