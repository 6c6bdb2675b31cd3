/*
 * The sampled blocks of PyTorch's in a sampled recording: their records and their sites. Their
 * bytes count in the totals as those of any other block, which is no part of this. For track/,
 * under the lock.
 */
#ifndef GM_TRACK_BLOCK_SAMPLES_H
#define GM_TRACK_BLOCK_SAMPLES_H

#include "track/event.h"

/* A sampled block came. Its bytes are not counted yet. */
void gm_sample_add(uint64_t block, uint64_t bytes, int device, struct gm_origin origin);

/* The block at an address went: if it was sampled its record ends. Its bytes are still counted. */
void gm_sample_end(uint64_t block);

#endif
