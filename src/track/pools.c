/*
 * Pools of stream-ordered memory and the graph memory of devices.
 *
 * Facts: cudaFreeAsync lowers what is used at once, and the reserve only when a wait has shown that
 * the stream got there; cudaFree of a pool's memory lowers the reserve at once and what the pool
 * calls used not at all (H100, driver 580); a pool that is destroyed while it has allocations lives
 * on without its handle until they are freed [doc].
 *
 * So what is used is what we count, which is exact at any moment, but for what was allocated before
 * the tracker started or without its knowledge. A graph's memory stays used until it is trimmed, so
 * the driver's figure is taken for it.
 */
#include "track/pools.h"
#include "track/event_log.h"
#include "track/ledger.h"
#include "track/levels.h"
#include "track/recording.h"
#include "track/timeline.h"
#include "track/torch_memory.h"
#include "track/update.h"

#include <string.h>

struct gm_pools gm_pools;
uint32_t gm_pools_waiting;

void gm_pools_reset(void)
{
	gm_pools_waiting = 0;
	memset(&gm_pools, 0, sizeof(gm_pools));
}

/* Returns the record of a pool that exists, or lives on without its handle; NULL for any other. */
static inline struct gm_pool_record *pool_at(uint32_t index)
{
	struct gm_pool_record *pool = gm_pool_at(index);

	return pool && pool->state != GM_STATE_EMPTY ? pool : NULL;
}

/* Sets the timeline's value of what the pools of a device hold. */
static void update_timeline(int device)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_POOLS].count;
	uint64_t sum = 0;

	for (index = 0; index < count; index++) {
		struct gm_pool_record *pool = pool_at(index);

		if (pool && pool->device == device && pool->type != GM_POOL_IMPORTED)
			sum += pool->reserved_bytes;
	}
	gm_timeline_set(device, GM_SERIES_POOL_RESERVED, sum);
}

void gm_pool_set_reserved(struct gm_pool_record *pool, uint64_t bytes)
{
	int64_t change = (int64_t)(bytes - pool->reserved_bytes);

	if (!change)
		return;
	gm_pools.sums[gm_slot(pool->device)].reserved_bytes += (uint64_t)change;
	pool->reserved_bytes = bytes;
	if (bytes > pool->reserved_peak_bytes)
		pool->reserved_peak_bytes = bytes;
	if (pool->type != GM_POOL_IMPORTED)
		gm_add_physical_bytes(pool->device, change);
	update_timeline(pool->device);
}

/* The ledger's latest sample is older than the growth, unless one follows. */
GM_COLD void gm_pool_grow(struct gm_pool_record *pool, uint64_t bytes)
{
	gm_pool_set_reserved(pool, bytes);
	if (pool->type != GM_POOL_IMPORTED)
		gm_ledger_missed(pool->device);
}

static uint32_t find(uint64_t handle, int device, unsigned type)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_POOLS].count;

	for (index = 0; index < count; index++) {
		struct gm_pool_record *pool = gm_store_record(GM_TABLE_POOLS, index);

		if (pool->state != GM_STATE_LIVE || pool->handle != handle)
			continue;
		if (type != GM_POOL_GRAPH || (pool->type == type && pool->device == device))
			return index;
	}
	return GM_NONE;
}

/* Returns an empty record: that of a pool that is gone, or a new one. */
static struct gm_pool_record *take_record(uint32_t *index)
{
	uint32_t count = gm_file->tables[GM_TABLE_POOLS].count;
	struct gm_pool_record *pool;

	for (*index = 0; *index < count; ++*index) {
		pool = gm_store_record(GM_TABLE_POOLS, *index);
		if (pool->state == GM_STATE_EMPTY) {
			*pool = (struct gm_pool_record){0};
			return pool;
		}
	}
	return gm_store_append(GM_TABLE_POOLS, 1, index);
}

uint32_t gm_track_pool(uint64_t handle, int device, unsigned type, uint32_t stack)
{
	struct gm_pool_record *pool;
	uint32_t index;

	if (!gm_file)
		return GM_NONE;
	gm_update_begin();
	index = find(handle, device, type);
	pool = index == GM_NONE ? take_record(&index) : NULL;
	if (pool) {
		pool->device = (int16_t)device;
		pool->type = (uint8_t)type;
		pool->handle = handle;
		pool->stack = stack;
		__atomic_store_n(&pool->state, GM_STATE_LIVE, __ATOMIC_RELEASE);
		gm_store_publish(GM_TABLE_POOLS);
		if (index < GM_FIRST_POOLS)
			__atomic_store_n(&gm_pools.first[index], pool, __ATOMIC_RELEASE);
	}
	gm_update_end();
	return gm_store_record(GM_TABLE_POOLS, index) ? index : GM_NONE;
}

void gm_track_pool_max(uint32_t index, uint64_t max_bytes)
{
	struct gm_pool_record *pool;

	if (!gm_file)
		return;
	gm_update_begin();
	pool = gm_store_record(GM_TABLE_POOLS, index);
	if (pool)
		pool->max_bytes = max_bytes;
	gm_update_end();
}

uint32_t gm_find_pool(uint64_t handle)
{
	uint32_t index, count = gm_file && handle ? gm_file->tables[GM_TABLE_POOLS].count : 0;

	for (index = 0; index < count; index++) {
		const struct gm_pool_record *pool = gm_pool_at(index);

		if (pool && pool->handle == handle && pool->state == GM_STATE_LIVE)
			return index;
	}
	return GM_NONE;
}

bool gm_track_pool_due(uint32_t index)
{
	struct gm_pool_record *pool = gm_file ? gm_store_record(GM_TABLE_POOLS, index) : NULL;

	return pool && gm_pool_is_due(pool, gm_track_now());
}

uint64_t gm_track_pool_changes(uint32_t index)
{
	struct gm_pool_record *pool = gm_file ? gm_store_record(GM_TABLE_POOLS, index) : NULL;

	return pool ? pool->allocations + pool->samples : 0;
}

static void configure(struct gm_pool_record *pool, uint64_t threshold_bytes)
{
	if (threshold_bytes == GM_NO_BYTES)
		return;
	pool->release_threshold_bytes = threshold_bytes;
	pool->configured = 1;
}

bool gm_track_pool_configured(uint32_t index)
{
	struct gm_pool_record *pool = gm_file ? gm_store_record(GM_TABLE_POOLS, index) : NULL;

	return pool && pool->configured;
}

uint64_t gm_track_pool_reserved(uint32_t index)
{
	struct gm_pool_record *pool = gm_file ? gm_store_record(GM_TABLE_POOLS, index) : NULL;

	return pool ? pool->reserved_bytes : 0;
}

void gm_track_pool_trimmed(uint32_t index, uint64_t before_bytes, uint64_t keep_bytes)
{
	struct gm_pool_record *pool;

	if (!gm_file)
		return;
	gm_update_begin();
	pool = pool_at(index);
	if (pool) {
		pool->trims++;
		if (before_bytes > pool->reserved_bytes)
			pool->trimmed_bytes += before_bytes - pool->reserved_bytes;
		if (pool->type != GM_POOL_GRAPH)
			gm_log_pool_event(GM_OP_TRIM, pool->device, 0, keep_bytes);
	}
	gm_update_end();
}

bool gm_track_pool_sampled(uint32_t index, const struct gm_pool_figures *figures, uint64_t changes)
{
	struct gm_pool_record *pool;
	bool same = true;

	if (!gm_file)
		return true;
	gm_update_begin();
	pool = pool_at(index);
	if (pool && pool->state == GM_STATE_LIVE) {
		same = gm_track_pool_changes(index) == changes;
		pool->samples++;
		pool->sampled_ns = gm_track.now_ns;
		if (pool->type == GM_POOL_GRAPH)
			gm_pool_set_used(pool, figures->used_bytes);
		/* Another thread may have allocated since these figures were queried. */
		gm_pool_set_reserved(pool, figures->reserved_bytes > pool->used_bytes
						   ? figures->reserved_bytes
						   : pool->used_bytes);
		if (pool->type == GM_POOL_GRAPH && figures->used_high_bytes > pool->used_peak_bytes)
			pool->used_peak_bytes = figures->used_high_bytes;
		if (figures->reserved_high_bytes > pool->reserved_peak_bytes)
			pool->reserved_peak_bytes = figures->reserved_high_bytes;
		configure(pool, figures->release_threshold_bytes);
		gm_pool_raise_peak(pool->device);
		gm_pool_update_pending(index, pool);
		if (pool->type == GM_POOL_DEFAULT)
			gm_torch_follow_pool(pool);
	}
	gm_update_end();
	return same;
}

static void end_pool(struct gm_pool_record *pool)
{
	gm_pool_set_reserved(pool, 0);
	gm_pool_set_used(pool, 0);
	pool->live_bytes = pool->pending_free_bytes = 0;
	__atomic_store_n(&pool->state, GM_STATE_EMPTY, __ATOMIC_RELEASE);
}

void gm_track_pool_destroyed(uint64_t handle)
{
	struct gm_pool_record *pool;
	uint32_t index;

	if (!gm_file || !handle)
		return;
	gm_update_begin();
	gm_file->events++;
	index = find(handle, 0, GM_POOL_DEFAULT);
	pool = pool_at(index);
	if (pool) {
		if (!pool->live_bytes)
			end_pool(pool);
		else
			__atomic_store_n(&pool->state, GM_STATE_PENDING, __ATOMIC_RELEASE);
	}
	gm_update_end();
}

bool gm_track_pools_idle(void)
{
	uint32_t index, count = gm_file ? gm_file->tables[GM_TABLE_POOLS].count : 0;

	for (index = 0; index < count; index++) {
		struct gm_pool_record *pool = pool_at(index);

		if (pool && pool->reserved_bytes > pool->used_bytes)
			return true;
	}
	return false;
}

void gm_track_pools_waited(uint64_t stream, bool all)
{
	unsigned i, kept = 0;

	if (!gm_file)
		return;
	gm_update_begin();
	for (i = 0; i < gm_pools.count; i++) {
		struct gm_pending entry = gm_pools.pending[i];
		struct gm_pool_record *pool = pool_at(entry.pool);

		if (!all && entry.stream != stream) {
			gm_pools.pending[kept++] = entry;
			continue;
		}
		if (!pool)
			continue;
		pool->pending_free_bytes -= entry.bytes < pool->pending_free_bytes
						    ? entry.bytes
						    : pool->pending_free_bytes;
		gm_log_pool_event(all ? GM_OP_WAIT_ALL : GM_OP_WAIT, pool->device, entry.stream, 0);
	}
	gm_pools.count = kept;
	__atomic_store_n(&gm_pools_waiting, kept != 0, __ATOMIC_RELAXED);
	gm_update_end();
}

bool gm_track_pool_handle(uint32_t index, uint64_t *handle, int *device, unsigned *type)
{
	struct gm_pool_record *pool = gm_file ? gm_store_record(GM_TABLE_POOLS, index) : NULL;

	if (!pool)
		return false;
	*handle = pool->state == GM_STATE_LIVE && pool->type != GM_POOL_IMPORTED ? pool->handle : 0;
	*device = pool->device;
	*type = pool->type;
	return true;
}

void gm_pool_add_pending_bytes(uint32_t index, uint64_t stream, uint64_t bytes, uint32_t stack)
{
	struct gm_pending *entry;
	unsigned i;

	for (i = 0; i < gm_pools.count; i++)
		if (gm_pools.pending[i].pool == index && gm_pools.pending[i].stream == stream)
			break;
	if (i == GM_PENDING_STREAMS)
		i = GM_PENDING_STREAMS - 1; /* the last entry stands for all further streams */
	entry = &gm_pools.pending[i];
	if (i == gm_pools.count) {
		gm_pools.count++;
		*entry = (struct gm_pending){.stream = stream, .pool = index};
	}
	entry->bytes += bytes;
	entry->stack = stack;
	__atomic_store_n(&gm_pools_waiting, 1, __ATOMIC_RELAXED);
}

void gm_pool_add(const struct gm_alloc_record *alloc)
{
	struct gm_pool_record *pool = pool_at(alloc->owner);

	if (pool)
		gm_pool_count_alloc(pool, alloc->bytes);
}

void gm_pool_remove(const struct gm_alloc_record *alloc)
{
	struct gm_pool_record *pool = pool_at(alloc->owner);

	if (!pool)
		return;
	gm_pool_count_free(pool, alloc->bytes);
	if (pool->state == GM_STATE_PENDING && !pool->live_bytes)
		end_pool(pool);
}

void gm_pool_add_pending(const struct gm_alloc_record *alloc, uint64_t stream, uint32_t stack)
{
	struct gm_pool_record *pool = pool_at(alloc->owner);

	if (pool && pool->type != GM_POOL_GRAPH)
		gm_pool_count_pending(alloc->owner, pool, alloc->bytes, stream, stack);
}
