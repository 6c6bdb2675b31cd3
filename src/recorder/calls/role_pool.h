/*
 * Pools of calls, and when their attributes are queried.
 */
#ifndef GM_RECORDER_ROLE_POOL_H
#define GM_RECORDER_ROLE_POOL_H

#include "track/pools.h"

#include <stdbool.h>
#include <stdint.h>

#define GM_POOL_DEVICES 64

/* Each device's current pool as last queried; 0: it is to be queried (atomic). */
extern uint64_t gm_current_pools[GM_POOL_DEVICES] __attribute__((visibility("hidden")));

/* The slow paths of gm_pool_of: they query the current pool, and enter one that is not known. */
uint64_t gm_find_current_pool(int device);
uint32_t gm_enter_pool(uint64_t handle, int device);

/*
 * The pool that an allocation on *device is taken from (`handle` 0: the current one); GM_NONE where
 * it is not known. Sets *device to the pool's.
 */
static inline uint32_t gm_pool_of(uint64_t handle, int *device)
{
	uint32_t pool;

	if (__builtin_expect(!handle && (unsigned)*device < GM_POOL_DEVICES, 1))
		handle = __atomic_load_n(&gm_current_pools[*device], __ATOMIC_RELAXED);
	if (__builtin_expect(!handle, 0))
		handle = gm_find_current_pool(*device);
	if (__builtin_expect(!handle, 0))
		return GM_NONE;
	pool = gm_track_pool_known(handle, device);
	return __builtin_expect(pool != GM_NONE, 1) ? pool : gm_enter_pool(handle, *device);
}

/* The pool that stands for a device's graph memory. */
uint32_t gm_graph_pool_of(int device);

/* Queries a pool's attributes if that is due, or in any case if `now`. */
void gm_sample_pool(uint32_t pool, bool now);

/* Queries those of all pools. */
void gm_sample_pools(void);

/*
 * Enters and queries the default and the current pool and the graph memory of each device that has
 * a context: they may have been in use before the recording began.
 */
void gm_sample_current_pools(void);

/*
 * Queries those that are due if a pool holds idle bytes, some of which other allocations may have
 * taken.
 */
void gm_sample_idle_pools_slow(void);

static inline void gm_sample_idle_pools(void)
{
	if (__builtin_expect(gm_track_has_pools(), 0))
		gm_sample_idle_pools_slow();
}

#endif
