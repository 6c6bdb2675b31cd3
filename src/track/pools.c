/*
 * Pools of stream-ordered memory and the devices' graph memory: what they hold in reserve, by their
 * own attributes as interpose/ asks them, and between two answers by what was allocated and freed.
 * What a pool holds counts as physical memory; its allocations do not, for they lie inside.
 * Facts: cudaFreeAsync lowers what is used at once, the reserve only when a wait has told that the
 * stream got there; cudaFree of a pool's memory lowers the reserve at once and what the pool calls used
 * not at all (H100, driver 580); a pool destroyed with allocations out lives on without its handle until
 * they are freed [doc].
 * So what is used is what our books say, which is exact at any moment; what they cannot know is what was
 * allocated before the tracker came or behind it. A graph's memory stays used until it is trimmed: there
 * the driver's figure counts.
 */
#include "track/pools.h"
#include "track/peaks.h"
#include "track/retries.h"
#include "track/state.h"

#include <string.h>

struct gm_pools gm_pools;
uint32_t gm_pools_waiting;

void gm_pools_reset(void)
{
	gm_pools_waiting = 0;
	memset(&gm_pools, 0, sizeof(gm_pools));
}

static inline struct gm_pool_record *pool_at(uint32_t number)
{
	struct gm_pool_record *pool = gm_pool_at(number);

	return pool && pool->state != GM_STATE_EMPTY ? pool : NULL;
}

static void chart(int device)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_POOLS].count;
	uint64_t sum = 0;

	for (number = 0; number < count; number++) {
		struct gm_pool_record *pool = pool_at(number);

		if (pool && pool->device == device && pool->type != GM_POOL_IMPORTED)
			sum += pool->reserved_bytes;
	}
	gm_timeline(device, GM_SERIES_POOL_RESERVED, sum);
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
		gm_levels_physical(pool->device, change);
	chart(pool->device);
}

static uint32_t find(uint64_t handle, int device, unsigned type)
{
	uint32_t number, count = gm_file->tables[GM_TABLE_POOLS].count;

	for (number = 0; number < count; number++) {
		struct gm_pool_record *pool = gm_store_record(GM_TABLE_POOLS, number);

		if (pool->state != GM_STATE_LIVE || pool->handle != handle)
			continue;
		if (type != GM_POOL_GRAPH || (pool->type == type && pool->device == device))
			return number;
	}
	return GM_NONE;
}

/* The record of a pool that is gone is used again. */
static struct gm_pool_record *take_record(uint32_t *number)
{
	uint32_t count = gm_file->tables[GM_TABLE_POOLS].count;
	struct gm_pool_record *pool;

	for (*number = 0; *number < count; ++*number) {
		pool = gm_store_record(GM_TABLE_POOLS, *number);
		if (pool->state == GM_STATE_EMPTY) {
			*pool = (struct gm_pool_record){0};
			return pool;
		}
	}
	return gm_store_append(GM_TABLE_POOLS, 1, number);
}

uint32_t gm_track_pool(uint64_t handle, int device, unsigned type, uint32_t stack)
{
	struct gm_pool_record *pool;
	uint32_t number;

	if (!gm_file)
		return GM_NONE;
	gm_track_enter();
	number = find(handle, device, type);
	pool = number == GM_NONE ? take_record(&number) : NULL;
	if (pool) {
		pool->device = (int16_t)device;
		pool->type = (uint8_t)type;
		pool->handle = handle;
		pool->stack = stack;
		__atomic_store_n(&pool->state, GM_STATE_LIVE, __ATOMIC_RELEASE);
		gm_store_publish(GM_TABLE_POOLS);
		if (number < GM_POOLS_NEAR)
			__atomic_store_n(&gm_pools.near[number], pool, __ATOMIC_RELEASE);
	}
	gm_track_leave();
	return gm_store_record(GM_TABLE_POOLS, number) ? number : GM_NONE;
}

void gm_track_pool_max(uint32_t number, uint64_t max_bytes)
{
	struct gm_pool_record *pool;

	if (!gm_file)
		return;
	gm_track_enter();
	pool = gm_store_record(GM_TABLE_POOLS, number);
	if (pool)
		pool->max_bytes = max_bytes;
	gm_track_leave();
}

static __attribute__((noinline)) uint32_t known_from(uint32_t number, uint64_t handle, int *device)
{
	uint32_t count = gm_file->tables[GM_TABLE_POOLS].count;

	for (; number < count; number++) {
		const struct gm_pool_record *pool = gm_pool_at(number);

		if (pool && pool->handle == handle && pool->state == GM_STATE_LIVE) {
			*device = pool->device;
			return number;
		}
	}
	return GM_NONE;
}

uint32_t gm_track_pool_known(uint64_t handle, int *device)
{
	const struct gm_pool_record *first = gm_pool_at(0);

	if (!gm_file || !handle)
		return GM_NONE;
	/* reads what stays as it is, states and handles alone: no lock */
	if (first && first->handle == handle && first->state == GM_STATE_LIVE) {
		*device = first->device;
		return 0;
	}
	return known_from(1, handle, device);
}

bool gm_track_pool_due(uint32_t number)
{
	struct gm_pool_record *pool = gm_file ? gm_store_record(GM_TABLE_POOLS, number) : NULL;

	return pool && gm_pool_is_due(pool, gm_track_now());
}

uint64_t gm_track_pool_changes(uint32_t number)
{
	struct gm_pool_record *pool = gm_file ? gm_store_record(GM_TABLE_POOLS, number) : NULL;

	return pool ? pool->allocations + pool->samples : 0;
}

static void configure(struct gm_pool_record *pool, uint64_t threshold_bytes)
{
	if (threshold_bytes == GM_NO_BYTES)
		return;
	pool->release_threshold_bytes = threshold_bytes;
	pool->configured = 1;
}

bool gm_track_pool_configured(uint32_t number)
{
	struct gm_pool_record *pool = gm_file ? gm_store_record(GM_TABLE_POOLS, number) : NULL;

	return pool && pool->configured;
}

uint64_t gm_track_pool_reserved(uint32_t number)
{
	struct gm_pool_record *pool = gm_file ? gm_store_record(GM_TABLE_POOLS, number) : NULL;

	return pool ? pool->reserved_bytes : 0;
}

void gm_track_pool_trimmed(uint32_t number, uint64_t before_bytes)
{
	struct gm_pool_record *pool;

	if (!gm_file)
		return;
	gm_track_enter();
	pool = pool_at(number);
	if (pool) {
		pool->trims++;
		if (before_bytes > pool->reserved_bytes)
			pool->trimmed_bytes += before_bytes - pool->reserved_bytes;
	}
	gm_track_leave();
}

bool gm_track_pool_sampled(uint32_t number, const struct gm_pool_figures *figures, uint64_t changes)
{
	struct gm_pool_record *pool;
	bool same = true;

	if (!gm_file)
		return true;
	gm_track_enter();
	pool = pool_at(number);
	if (pool && pool->state == GM_STATE_LIVE) {
		same = gm_track_pool_changes(number) == changes;
		pool->samples++;
		pool->sampled_ns = gm_track.now_ns;
		if (pool->type == GM_POOL_GRAPH)
			gm_pool_set_used(pool, figures->used_bytes);
		/* Another thread may have allocated since these figures were asked. */
		gm_pool_set_reserved(pool, figures->reserved_bytes > pool->used_bytes ?
					   figures->reserved_bytes : pool->used_bytes);
		if (pool->type == GM_POOL_GRAPH && figures->used_high_bytes > pool->used_peak_bytes)
			pool->used_peak_bytes = figures->used_high_bytes;
		if (figures->reserved_high_bytes > pool->reserved_peak_bytes)
			pool->reserved_peak_bytes = figures->reserved_high_bytes;
		configure(pool, figures->release_threshold_bytes);
		gm_pool_raise_peak(pool->device);
		gm_pool_settle_pending(number, pool);
		if (pool->type == GM_POOL_DEFAULT)
			gm_torch_pool(pool);
	}
	gm_track_leave();
	return same;
}

static void gone(struct gm_pool_record *pool)
{
	gm_pool_set_reserved(pool, 0);
	gm_pool_set_used(pool, 0);
	pool->live_bytes = pool->pending_free_bytes = 0;
	__atomic_store_n(&pool->state, GM_STATE_EMPTY, __ATOMIC_RELEASE);
}

void gm_track_pool_destroyed(uint64_t handle)
{
	struct gm_pool_record *pool;
	uint32_t number;

	if (!gm_file || !handle)
		return;
	gm_track_enter();
	gm_file->events++;
	number = find(handle, 0, GM_POOL_DEFAULT);
	pool = pool_at(number);
	if (pool) {
		if (!pool->live_bytes)
			gone(pool);
		else
			__atomic_store_n(&pool->state, GM_STATE_PENDING, __ATOMIC_RELEASE);
	}
	gm_track_leave();
}

bool gm_track_pools_idle(void)
{
	uint32_t number, count = gm_file ? gm_file->tables[GM_TABLE_POOLS].count : 0;

	for (number = 0; number < count; number++) {
		struct gm_pool_record *pool = pool_at(number);

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
	gm_track_enter();
	for (i = 0; i < gm_pools.count; i++) {
		struct gm_pending entry = gm_pools.pending[i];
		struct gm_pool_record *pool = pool_at(entry.pool);

		if (!all && entry.stream != stream)
			gm_pools.pending[kept++] = entry;
		else if (pool)
			pool->pending_free_bytes -= entry.bytes < pool->pending_free_bytes ?
							    entry.bytes : pool->pending_free_bytes;
	}
	gm_pools.count = kept;
	__atomic_store_n(&gm_pools_waiting, kept != 0, __ATOMIC_RELAXED);
	gm_track_leave();
}

bool gm_track_pool_handle(uint32_t number, uint64_t *handle, int *device, unsigned *type)
{
	struct gm_pool_record *pool = gm_file ? gm_store_record(GM_TABLE_POOLS, number) : NULL;

	if (!pool)
		return false;
	*handle = pool->state == GM_STATE_LIVE && pool->type != GM_POOL_IMPORTED ? pool->handle : 0;
	*device = pool->device;
	*type = pool->type;
	return true;
}

void gm_pool_pends(uint32_t number, uint64_t stream, uint64_t bytes)
{
	struct gm_pending *entry;
	unsigned i;

	for (i = 0; i < gm_pools.count; i++)
		if (gm_pools.pending[i].pool == number && gm_pools.pending[i].stream == stream)
			break;
	if (i == GM_PENDING_STREAMS)
		i = GM_PENDING_STREAMS - 1; /* more streams than places: the last place stands for several */
	entry = &gm_pools.pending[i];
	if (i == gm_pools.count) {
		gm_pools.count++;
		*entry = (struct gm_pending){.stream = stream, .pool = number};
	}
	entry->bytes += bytes;
	__atomic_store_n(&gm_pools_waiting, 1, __ATOMIC_RELAXED);
}

void gm_pool_add(const struct gm_alloc_record *alloc)
{
	struct gm_pool_record *pool = pool_at(alloc->owner);

	if (pool)
		gm_pool_took(pool, alloc->bytes);
}

void gm_pool_remove(const struct gm_alloc_record *alloc)
{
	struct gm_pool_record *pool = pool_at(alloc->owner);

	if (!pool)
		return;
	gm_pool_gave(pool, alloc->bytes);
	if (pool->state == GM_STATE_PENDING && !pool->live_bytes)
		gone(pool);
}

void gm_pool_pending(const struct gm_alloc_record *alloc, uint64_t stream)
{
	struct gm_pool_record *pool = pool_at(alloc->owner);

	if (pool && pool->type != GM_POOL_GRAPH)
		gm_pool_waits(alloc->owner, pool, alloc->bytes, stream);
}
