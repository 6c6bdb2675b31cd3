/*
 * The steps that an allocation from a pool and its free are made of (pools.c). Private to track/, under
 * the lock.
 */
#ifndef GM_TRACK_POOLS_H
#define GM_TRACK_POOLS_H

#include "track/state.h"

/* A pool that is there, of stream-ordered memory; NULL else. */
struct gm_pool_record *gm_pool_of_streams(uint32_t number);

/* These bytes were allocated from it; were freed; were freed on a stream that nobody waited for yet. */
void gm_pool_took(struct gm_pool_record *pool, uint64_t bytes);
void gm_pool_gave(struct gm_pool_record *pool, uint64_t bytes);
void gm_pool_waits(uint32_t number, struct gm_pool_record *pool, uint64_t bytes, uint64_t stream);

#endif
