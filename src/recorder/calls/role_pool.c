/*
 * Roles of pools and of waits: which pool an allocation comes from, and when its attributes are
 * queried.
 */
#include "recorder/calls/role_pool.h"
#include "recorder/calls/internal.h"
#include "recorder/calls/role_steps.h"
#include "recorder/query/query.h"
#include "store/hot.h"
#include "track/devices.h"
#include "track/pools.h"

#define TRIES 3 /* to query a pool while no other thread changes it */

uint64_t gm_current_pools[GM_POOL_DEVICES];

static void forget_current(void)
{
	unsigned i;

	for (i = 0; i < GM_POOL_DEVICES; i++)
		__atomic_store_n(&gm_current_pools[i], 0, __ATOMIC_RELAXED);
}

GM_COLD uint64_t gm_find_current_pool(int device)
{
	uint64_t pool = gm_query_current_pool(device);

	if (device >= 0 && device < GM_POOL_DEVICES)
		__atomic_store_n(&gm_current_pools[device], pool, __ATOMIC_RELAXED);
	return pool;
}

GM_COLD uint32_t gm_enter_pool(uint64_t handle, int device)
{
	unsigned type =
		handle == gm_query_default_pool(device) ? GM_POOL_DEFAULT : GM_POOL_EXPLICIT;

	return gm_track_pool(handle, device, type, GM_NONE);
}

uint32_t gm_graph_pool_of(int device)
{
	return gm_track_pool(0, device, GM_POOL_GRAPH, GM_NONE);
}

void gm_sample_pool(uint32_t pool, bool now)
{
	struct gm_pool_figures figures = {.release_threshold_bytes = GM_NO_BYTES};
	uint64_t handle, changes;
	unsigned type, i;
	int device;

	if (pool == GM_NONE || (!now && !gm_track_pool_due(pool)) ||
	    !gm_track_pool_handle(pool, &handle, &device, &type))
		return;
	if (handle && (now || !gm_track_pool_configured(pool)))
		figures.release_threshold_bytes = gm_query_pool_threshold(handle);
	for (i = 0; i < TRIES; i++) {
		changes = gm_track_pool_changes(pool);
		if (type == GM_POOL_GRAPH ? !gm_query_graph_figures(device, &figures)
					  : !handle || !gm_query_pool_figures(handle, &figures))
			return;
		if (gm_track_pool_sampled(pool, &figures, changes))
			return;
	}
}

static void sample_pools(bool now)
{
	uint32_t pool;
	uint64_t handle;
	unsigned type;
	int device;

	for (pool = 0; gm_track_pool_handle(pool, &handle, &device, &type); pool++)
		if (handle || type == GM_POOL_GRAPH)
			gm_sample_pool(pool, now);
}

void gm_sample_pools(void)
{
	sample_pools(true);
}

void gm_sample_current_pools(void)
{
	int device, owner, devices = gm_track_devices();

	for (device = 0; device < devices; device++) {
		if (!gm_query_primary_active(device, false))
			continue;
		owner = device;
		gm_sample_pool(gm_pool_of(gm_query_default_pool(device), &owner), true);
		owner = device;
		gm_sample_pool(gm_pool_of(0, &owner), true);
		gm_sample_pool(gm_graph_pool_of(device), true);
	}
}

void gm_sample_idle_pools_slow(void)
{
	if (gm_track_pools_idle())
		sample_pools(false);
}

void gm_end_pool_create(struct gm_call *call, const struct gm_row *row, int result)
{
	const CUmemLocation *location = call->location;
	bool on_device = location && location->type == GM_MEM_LOCATION_DEVICE;
	uint32_t pool;

	(void)row;
	if (result != GM_CUDA_SUCCESS)
		return;
	pool = gm_track_pool(gm_read_out(call), on_device ? location->id : GM_HOST,
			     GM_POOL_EXPLICIT, gm_call_stack(call, 0, NULL));
	if (call->bytes)
		gm_track_pool_max(pool, call->bytes);
}

void gm_end_pool_import(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result == GM_CUDA_SUCCESS)
		gm_track_pool(gm_read_out(call), gm_context_device(), GM_POOL_IMPORTED,
			      gm_call_stack(call, 0, NULL));
}

void gm_end_pool_destroy(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result != GM_CUDA_SUCCESS)
		return;
	gm_track_pool_destroyed(call->pool);
	forget_current(); /* a device whose current pool it was has its default pool again */
}

static void begin_trim(struct gm_call *call, uint32_t pool)
{
	gm_sample_pool(pool, true);
	call->own_before = gm_track_pool_reserved(pool);
}

static void end_trim(const struct gm_call *call, uint32_t pool, int result)
{
	if (result != GM_CUDA_SUCCESS)
		return;
	gm_sample_pool(pool, true);
	gm_track_pool_trimmed(pool, call->own_before, call->bytes);
}

void gm_begin_pool_trim(struct gm_call *call, const struct gm_row *row)
{
	int device;

	(void)row;
	begin_trim(call, gm_track_pool_known(call->pool, &device));
}

void gm_end_pool_trim(struct gm_call *call, const struct gm_row *row, int result)
{
	int device;

	(void)row;
	end_trim(call, gm_track_pool_known(call->pool, &device), result);
}

void gm_begin_graph_trim(struct gm_call *call, const struct gm_row *row)
{
	(void)row;
	if (call->device >= 0)
		begin_trim(call, gm_graph_pool_of(call->device));
}

void gm_end_graph_trim(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (call->device >= 0)
		end_trim(call, gm_graph_pool_of(call->device), result);
}

void gm_end_pool_set(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)call;
	(void)row;
	if (result == GM_CUDA_SUCCESS)
		forget_current();
}

void gm_end_sync(struct gm_call *call, const struct gm_row *row, int result)
{
	bool context = call->count == 0, stream = call->count == 1;

	if (result != GM_CUDA_SUCCESS)
		return;
	if (context || stream)
		gm_track_pools_waited(gm_stream_of(call, row), context);
	sample_pools(context);
}
