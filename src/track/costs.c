/*
 * Device memory that calls take without saying so: loading code, limits. Summed per device, kind of
 * cost and calling library; interpose/ measures it by the driver's free bytes.
 */
#include "track/state.h"

#define COSTS_KEPT 1024u

static struct gm_cost_record *cost_record(int device, enum gm_cost cost, uint32_t module)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_COSTS].count;
	struct gm_cost_record *record;

	for (number = 0; number < count; number++) {
		record = gm_store_record(GM_TABLE_COSTS, number);
		if (record->device == device && record->cost == cost &&
		    (record->module == module || count >= COSTS_KEPT))
			return record;
	}
	record = gm_store_append(GM_TABLE_COSTS, 1, &number);
	if (record) {
		record->device = (int16_t)device;
		record->cost = (uint8_t)cost;
		record->module = module;
		record->stack = GM_NONE;
	}
	return record;
}

void gm_track_cost(int device, enum gm_cost cost, int64_t bytes, int object, uint32_t module,
		   uint32_t stack)
{
	struct gm_cost_record *record;

	if (!gm_file)
		return;
	gm_track_enter();
	record = cost_record(device, cost, module);
	if (record) {
		if (object > 0)
			record->calls++, record->live++;
		else if (object < 0)
			record->ends++, record->live -= record->live > 0;
		record->bytes += bytes;
		record->stack = stack;
		gm_store_publish(GM_TABLE_COSTS);
	}
	gm_track_leave();
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
