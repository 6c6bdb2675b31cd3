/*
 * The steps that an allocation from a pool and its free are made of, inline (pools.c has the rest and says
 * what the figures mean). Private to track/, under the lock.
 */
#ifndef GM_TRACK_POOLS_H
#define GM_TRACK_POOLS_H

#include "track/peaks.h"
#include "track/state.h"

#define GM_POOLS_NEAR	    16u	     /* pools whose records' addresses are at hand */
#define GM_PENDING_STREAMS  64u
#define GM_POOL_ASKED	    512u     /* answers per pool before asking becomes rare */
#define GM_POOL_ASKED_NS    1000000u /* then it is asked as often */

/* Bytes freed on a stream that nobody waited for since. */
struct gm_pending {
	uint64_t stream, bytes;
	uint32_t pool;
};

/* Of a device's pools together. */
struct gm_pool_sums {
	uint64_t reserved_bytes, used_bytes;
};

struct gm_pools {
	struct gm_pool_record *near[GM_POOLS_NEAR]; /* (atomic for readers without the lock) */
	unsigned count;
	struct gm_pending pending[GM_PENDING_STREAMS];
	struct gm_pool_sums sums[GM_SLOTS];
};
extern struct gm_pools gm_pools __attribute__((visibility("hidden")));

/* Books what a pool holds. */
void gm_pool_set_reserved(struct gm_pool_record *pool, uint64_t bytes);

/* NULL where there was never one of that number. Needs no lock: a record stays where it is. */
static inline struct gm_pool_record *gm_pool_at(uint32_t number)
{
	return number < GM_POOLS_NEAR ? __atomic_load_n(&gm_pools.near[number], __ATOMIC_ACQUIRE)
				      : gm_store_record(GM_TABLE_POOLS, number);
}

/* A pool that is there, of stream-ordered memory; NULL else. */
static inline struct gm_pool_record *gm_pool_of_streams(uint32_t number)
{
	struct gm_pool_record *pool = gm_pool_at(number);

	return pool && pool->state == GM_STATE_LIVE && pool->type < GM_POOL_GRAPH ? pool : NULL;
}

static inline bool gm_pool_is_due(const struct gm_pool_record *pool, uint64_t now_ns)
{
	return pool->type != GM_POOL_IMPORTED &&
	       (pool->samples < GM_POOL_ASKED || pool->used_bytes >= pool->reserved_bytes ||
		now_ns - pool->sampled_ns >= GM_POOL_ASKED_NS);
}

static inline void gm_pool_set_used(struct gm_pool_record *pool, uint64_t bytes)
{
	gm_pools.sums[gm_slot(pool->device)].used_bytes += bytes - pool->used_bytes;
	pool->used_bytes = bytes;
}

static inline void gm_pool_raise_peak(int device)
{
	gm_peak_raise(device, GM_HOLES_POOL, gm_pools.sums[gm_slot(device)].used_bytes,
		      gm_pools.sums[gm_slot(device)].reserved_bytes);
}

/* These bytes were allocated from it. */
static inline void gm_pool_took(struct gm_pool_record *pool, uint64_t bytes)
{
	uint64_t used_bytes = pool->used_bytes + bytes;
	int device = pool->device;
	struct gm_pool_sums *sums = &gm_pools.sums[gm_slot(device)];

	pool->allocations++;
	pool->live_bytes += bytes;
	pool->used_bytes = used_bytes;
	sums->used_bytes += bytes;
	if (used_bytes > pool->used_peak_bytes)
		pool->used_peak_bytes = used_bytes;
	if (__builtin_expect(used_bytes > pool->reserved_bytes, 0))
		gm_pool_set_reserved(pool, used_bytes); /* until it is asked */
	gm_peak_raise(device, GM_HOLES_POOL, sums->used_bytes, sums->reserved_bytes);
}

/* These were freed. A graph's stays used until it is trimmed. */
static inline void gm_pool_gave(struct gm_pool_record *pool, uint64_t bytes)
{
	pool->live_bytes -= bytes < pool->live_bytes ? bytes : pool->live_bytes;
	if (pool->type != GM_POOL_GRAPH)
		gm_pool_set_used(pool, pool->used_bytes -
					       (bytes < pool->used_bytes ? bytes : pool->used_bytes));
}

/* What is freed on streams and in the pool's reserve still. */
static inline void gm_pool_settle_pending(uint32_t number, struct gm_pool_record *pool)
{
	uint64_t idle = pool->reserved_bytes > pool->used_bytes ?
				pool->reserved_bytes - pool->used_bytes : 0;
	uint64_t pending = 0;
	unsigned i;

	for (i = 0; i < gm_pools.count; i++)
		if (gm_pools.pending[i].pool == number)
			pending += gm_pools.pending[i].bytes;
	pool->pending_free_bytes = pending < idle ? pending : idle;
}

/* These were freed on a stream that nobody waited for yet. */
void gm_pool_pends(uint32_t number, uint64_t stream, uint64_t bytes);

static inline void gm_pool_waits(uint32_t number, struct gm_pool_record *pool, uint64_t bytes, uint64_t stream)
{
	struct gm_pending *first = &gm_pools.pending[0];

	if (gm_pools.count && first->pool == number && first->stream == stream)
		first->bytes += bytes;
	else
		gm_pool_pends(number, stream, bytes);
	gm_pool_settle_pending(number, pool);
}

#endif
