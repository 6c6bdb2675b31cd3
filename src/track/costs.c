/*
 * Device memory that calls take without saying so: loading code, making streams, first launches, limits.
 * Summed per device, kind of cost and calling library; interpose/role_cost.c measures it.
 */
#include "track/state.h"
#include "track/torch.h"

#define COSTS_KEPT 1024u

static int64_t sums[GM_SLOTS]; /* of all costs of a device (atomic) */
static bool gone[GM_SLOTS];    /* with the device's contexts; the records say so with the next cost */

void gm_costs_reset(void)
{
	unsigned i;

	for (i = 0; i < GM_SLOTS; i++) {
		sums[i] = 0;
		gone[i] = false;
	}
}

void gm_costs_gone(int device)
{
	__atomic_store_n(&sums[gm_slot(device)], 0, __ATOMIC_RELAXED);
	gone[gm_slot(device)] = true;
}

/* What the last contexts' costs were is told of until others take their place: many programs end so. */
static void begin_anew(int device)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_COSTS].count;

	for (number = 0; number < count; number++) {
		struct gm_cost_record *record = gm_store_record(GM_TABLE_COSTS, number);

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
	uint32_t number, count = gm_file->tables[GM_TABLE_COSTS].count;
	int64_t sum = 0;

	for (number = 0; number < count && !gone[gm_slot(device)]; number++) {
		const struct gm_cost_record *record = gm_store_record(GM_TABLE_COSTS, number);

		if (record->device == device && record->cost == cost)
			sum += record->bytes;
	}
	return sum;
}

static struct gm_cost_record *cost_record(const struct gm_cost_event *event)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_COSTS].count;
	struct gm_cost_record *record;

	for (number = 0; number < count; number++) {
		record = gm_store_record(GM_TABLE_COSTS, number);
		if (record->device == event->device && record->cost == event->cost &&
		    (record->module == event->module || count >= COSTS_KEPT))
			return record;
	}
	record = gm_store_append(GM_TABLE_COSTS, 1, &number);
	if (record) {
		record->device = (int16_t)event->device;
		record->cost = (uint8_t)event->cost;
		record->module = event->module;
		record->stack = GM_NONE;
	}
	return record;
}

static void book(struct gm_cost_record *record, const struct gm_cost_event *event)
{
	if (gone[gm_slot(event->device)])
		begin_anew(event->device);
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
	gm_track_enter();
	same = !event->bytes || gm_track_explained_bytes(event->device) == event->explained_bytes;
	record = same ? cost_record(event) : NULL;
	if (record)
		book(record, event);
	gm_track_leave();
	return same;
}

void gm_track_limits(uint64_t stack_bytes, uint64_t heap_bytes)
{
	if (!gm_file)
		return;
	gm_track_enter();
	if (stack_bytes != GM_NO_BYTES)
		gm_file->stack_limit_bytes = stack_bytes;
	if (heap_bytes != GM_NO_BYTES)
		gm_file->heap_limit_bytes = heap_bytes;
	gm_track_leave();
}

void gm_track_used_before(int device, uint64_t bytes)
{
	struct gm_device_record *record;

	if (!gm_file || device < 0)
		return;
	gm_track_enter();
	record = gm_store_record(GM_TABLE_DEVICES, (uint32_t)device);
	if (record && record->free_before_bytes == GM_NO_BYTES)
		record->free_before_bytes = record->total_bytes > bytes ? record->total_bytes - bytes : 0;
	gm_track_leave();
}
