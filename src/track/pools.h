/*
 * Pools of stream-ordered memory and the graph memory of devices: what they hold in reserve, by
 * their own attributes as the recorder queries them, and between two answers by what was allocated
 * and freed. What a pool holds counts as physical memory; its allocations do not, because they lie
 * inside.
 */
#ifndef GM_TRACK_POOLS_H
#define GM_TRACK_POOLS_H

#include "track/event.h"
#include "track/peaks.h"
#include "track/state.h"

/* A pool's attributes. */
struct gm_pool_figures {
	uint64_t reserved_bytes, used_bytes, reserved_high_bytes, used_high_bytes;
	uint64_t release_threshold_bytes; /* GM_NO_BYTES: not queried */
};

/*
 * Returns the index in GM_TABLE_POOLS of the pool with this handle, which is entered with its type
 * and the stack that made it if it is new; GM_NONE if the file is full. A device's graph memory is
 * a pool with the handle 0.
 */
uint32_t gm_track_pool(uint64_t handle, int device, unsigned type, uint32_t stack);

/* Records the maximum that a pool was made with. */
void gm_track_pool_max(uint32_t index, uint64_t max_bytes);

/*
 * Returns whether the pool's attributes should be queried: always at first, later once in a while.
 * Without the lock.
 */
bool gm_track_pool_due(uint32_t index);

/*
 * Returns a number that rises with the pool's allocations and with what is recorded of its
 * attributes. Without the lock.
 */
uint64_t gm_track_pool_changes(uint32_t index);

/*
 * Records a pool's attributes, as they were when gm_track_pool_changes returned `changes`. Returns
 * false if the pool has changed since: the attributes may be older than the records, and should be
 * queried again.
 */
bool gm_track_pool_sampled(uint32_t index, const struct gm_pool_figures *figures, uint64_t changes);

/* Returns whether the pool's release threshold was queried. Without the lock. */
bool gm_track_pool_configured(uint32_t index);

/*
 * Returns what the pool held in reserve when it was queried last, 0 if it is not known. Without the
 * lock.
 */
uint64_t gm_track_pool_reserved(uint32_t index);

/*
 * The pool was trimmed to `keep_bytes`, and queried since; `before_bytes` is what it held in
 * reserve before.
 */
void gm_track_pool_trimmed(uint32_t index, uint64_t before_bytes, uint64_t keep_bytes);

/* A pool was destroyed: its handle is invalid, what is allocated from it stays. */
void gm_track_pool_destroyed(uint64_t handle);

/* Returns whether any pool is known. A file must be open. Without the lock. */
static inline bool gm_track_has_pools(void)
{
	return gm_file->tables[GM_TABLE_POOLS].count != 0;
}

/* Returns whether any pool holds more in reserve than is allocated from it. Without the lock. */
bool gm_track_pools_idle(void);

extern uint32_t gm_pools_waiting __attribute__((visibility("hidden"))); /* (atomic) */

/*
 * Returns whether bytes were freed on streams that were not waited for since: a wait may release
 * them. Without the lock.
 */
static inline bool gm_track_pools_waiting(void)
{
	return __atomic_load_n(&gm_pools_waiting, __ATOMIC_RELAXED);
}

/* A stream was waited for, or with `all` a whole context: its frees are not pending any more. */
void gm_track_pools_waited(uint64_t stream, bool all);

/*
 * Stores the handle of a pool, 0 if it need not be queried after a wait, with its device and type.
 * Returns false past the last pool.
 */
bool gm_track_pool_handle(uint32_t index, uint64_t *handle, int *device, unsigned *type);

/* ---- for track/, under the lock ---- */

#define GM_FIRST_POOLS	      16u /* the addresses of so many records are kept in memory */
#define GM_PENDING_STREAMS    64u
#define GM_POOL_FIRST_QUERIES 512u     /* so many times a pool is queried whenever it may be */
#define GM_POOL_QUERY_NS      1000000u /* afterwards at most this often */

/* Bytes of a pool that were freed on a stream which was not waited for since. */
struct gm_pending {
	uint64_t stream, bytes;
	uint32_t pool;
	uint32_t stack; /* of the latest free */
};

/* The sums over a device's pools. */
struct gm_pool_sums {
	uint64_t reserved_bytes, used_bytes;
};

struct gm_pools {
	struct gm_pool_record *first[GM_FIRST_POOLS]; /* (atomic for readers without the lock) */
	unsigned count;				      /* of `pending` */
	struct gm_pending pending[GM_PENDING_STREAMS];
	struct gm_pool_sums sums[GM_SLOTS];
};
extern struct gm_pools gm_pools __attribute__((visibility("hidden")));

void gm_pools_reset(void);

/* An allocation of a pool came or went. */
void gm_pool_add(const struct gm_alloc_record *alloc);
void gm_pool_remove(const struct gm_alloc_record *alloc);

/* An allocation was freed on a stream, so that its bytes stay in the pool's reserve for now. */
void gm_pool_add_pending(const struct gm_alloc_record *alloc, uint64_t stream, uint32_t stack);

/* Sets what a pool holds in reserve. */
void gm_pool_set_reserved(struct gm_pool_record *pool, uint64_t bytes);

/* An allocation needs more than the reserve, which is `bytes` until the pool is queried. */
void gm_pool_grow(struct gm_pool_record *pool, uint64_t bytes);

/* ---- the steps of the above, for the fast path ---- */

/* The slow path of gm_pool_count_pending. */
void gm_pool_add_pending_bytes(uint32_t index, uint64_t stream, uint64_t bytes, uint32_t stack);

/*
 * Returns a pool's record, NULL if there never was one of that index. Needs no lock: records stay
 * where they are.
 */
static inline struct gm_pool_record *gm_pool_at(uint32_t index)
{
	return index < GM_FIRST_POOLS ? __atomic_load_n(&gm_pools.first[index], __ATOMIC_ACQUIRE)
				      : gm_store_record(GM_TABLE_POOLS, index);
}

/* The slow path of gm_track_pool_known. */
uint32_t gm_find_pool(uint64_t handle);

/*
 * Returns a pool's index and stores its device; GM_NONE if it is not known. Without the lock: only
 * states and handles are read, which do not change while a pool exists.
 */
static inline uint32_t gm_track_pool_known(uint64_t handle, int *device)
{
	const struct gm_pool_record *pool = gm_pool_at(0);
	uint32_t index = 0;

	if (__builtin_expect(!handle || !pool || pool->handle != handle ||
				     pool->state != GM_STATE_LIVE,
			     0)) {
		index = gm_find_pool(handle);
		if (index == GM_NONE)
			return GM_NONE;
		pool = gm_pool_at(index);
	}
	*device = pool->device;
	return index;
}

/* Returns the record of an existing pool of stream-ordered memory, NULL for any other. */
static inline struct gm_pool_record *gm_pool_of_streams(uint32_t index)
{
	struct gm_pool_record *pool = gm_pool_at(index);

	return pool && pool->state == GM_STATE_LIVE && pool->type < GM_POOL_GRAPH ? pool : NULL;
}

static inline bool gm_pool_is_due(const struct gm_pool_record *pool, uint64_t now_ns)
{
	return __builtin_expect(pool->samples < GM_POOL_FIRST_QUERIES ||
					pool->used_bytes >= pool->reserved_bytes ||
					now_ns - pool->sampled_ns >= GM_POOL_QUERY_NS,
				0) &&
	       pool->type != GM_POOL_IMPORTED;
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

/* Counts bytes that were allocated from a pool. */
static inline void gm_pool_count_alloc(struct gm_pool_record *pool, uint64_t bytes)
{
	uint64_t used_bytes = pool->used_bytes + bytes;
	int device = pool->device;
	struct gm_pool_sums *sums = &gm_pools.sums[gm_slot(device)];

	pool->allocations++;
	pool->live_bytes += bytes;
	/* A graph's blocks take turns in the memory that it keeps: the driver's figure follows. */
	if (__builtin_expect(pool->type == GM_POOL_GRAPH, 0))
		used_bytes = pool->used_bytes > pool->live_bytes ? pool->used_bytes
								 : pool->live_bytes;
	sums->used_bytes += used_bytes - pool->used_bytes;
	pool->used_bytes = used_bytes;
	if (used_bytes > pool->used_peak_bytes)
		pool->used_peak_bytes = used_bytes;
	if (__builtin_expect(used_bytes > pool->reserved_bytes, 0))
		gm_pool_grow(pool, used_bytes);
	gm_peak_raise(device, GM_HOLES_POOL, sums->used_bytes, sums->reserved_bytes);
}

/* Counts bytes that were freed. A graph's bytes stay used until its memory is trimmed. */
static inline void gm_pool_count_free(struct gm_pool_record *pool, uint64_t bytes)
{
	pool->live_bytes -= bytes < pool->live_bytes ? bytes : pool->live_bytes;
	if (__builtin_expect(pool->type != GM_POOL_GRAPH, 1))
		gm_pool_set_used(pool,
				 pool->used_bytes -
					 (bytes < pool->used_bytes ? bytes : pool->used_bytes));
}

/* Recomputes what was freed on streams and is still in the pool's reserve. */
static inline void gm_pool_update_pending(uint32_t index, struct gm_pool_record *pool)
{
	uint64_t idle = pool->reserved_bytes > pool->used_bytes
				? pool->reserved_bytes - pool->used_bytes
				: 0;
	uint64_t pending = 0;
	unsigned i;

	for (i = 0; i < gm_pools.count && pending < idle; i++)
		if (gm_pools.pending[i].pool == index)
			pending += gm_pools.pending[i].bytes;
	pool->pending_free_bytes = pending < idle ? pending : idle;
}

/* Counts bytes that were freed on a stream which was not waited for yet. */
static inline void gm_pool_count_pending(uint32_t index, struct gm_pool_record *pool,
					 uint64_t bytes, uint64_t stream, uint32_t stack)
{
	struct gm_pending *first = &gm_pools.pending[0];

	if (__builtin_expect(gm_pools.count && first->pool == index && first->stream == stream, 1))
		first->bytes += bytes, first->stack = stack;
	else
		gm_pool_add_pending_bytes(index, stream, bytes, stack);
	gm_pool_update_pending(index, pool);
}

#endif
