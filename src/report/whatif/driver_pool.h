/*
 * A model of the driver's pool of stream-ordered memory (cuMemAllocAsync, cudaMallocAsync) on one
 * device: what it takes from the device, hands out, keeps and gives back. Its rules are not public;
 * docs/evidence/whatif.md has how they were found, and on which driver.
 *
 * The model is exact where it is known when the device gets to a free: the pool asks for it where a
 * request finds no room.
 */
#ifndef GM_REPORT_WHATIF_DRIVER_POOL_H
#define GM_REPORT_WHATIF_DRIVER_POOL_H

#include "report/whatif/allocator.h"

#define GM_POOL_CHUNK_BYTES (32ull << 20) /* the reserve grows by so much */

/* The distance of the device behind the program when the pool asks, in requests and frees. */
struct gm_pool_timing {
	enum {
		GM_DEVICE_IDLE,	  /* not at all */
		GM_DEVICE_BEHIND, /* by up to `scale` */
		GM_DEVICE_BURSTS, /* one time in `scale` it has got to the last one */
		GM_DEVICE_LATE	  /* it gets there at waits alone */
	} kind;
	unsigned scale, seed;
};

struct gm_pool_options {
	uint64_t release_threshold_bytes;
	uint64_t device_bytes; /* the most that the device has for it; UINT64_MAX: no limit */
	struct gm_pool_timing timing;
};

struct gm_pool_model;

struct gm_pool_model *gm_pool_model_new(const struct gm_pool_options *options);
void gm_pool_model_free(struct gm_pool_model *model);

/*
 * `segments` are growths of the reserve, `ties` times at which it mattered whether the device had
 * got to a free; there are no retries.
 */
const struct gm_model_figures *gm_pool_model_figures(const struct gm_pool_model *model);

/* A request on a stream. Returns a block, or GM_NO_BLOCK if the device has not enough. */
uint32_t gm_pool_model_alloc(struct gm_pool_model *model, uint32_t stream, uint64_t bytes);

/* Frees a block on a stream. Its number is free for reuse. */
void gm_pool_model_free_block(struct gm_pool_model *model, uint32_t block, uint32_t stream);

/* Returns the stream that a block was requested on. */
uint32_t gm_pool_model_stream(const struct gm_pool_model *model, uint32_t block);

/* Returns the address of a block, from the pool's first one. */
uint64_t gm_pool_model_address(const struct gm_pool_model *model, uint32_t block);

/*
 * The program waits for a stream, or for all (GM_ALL_STREAMS). If memory was freed there the pool
 * gives back what it has beyond its threshold.
 */
#define GM_ALL_STREAMS UINT32_MAX
void gm_pool_model_wait(struct gm_pool_model *model, uint32_t stream);

/* cudaMemPoolTrimTo() */
void gm_pool_model_trim(struct gm_pool_model *model, uint64_t keep_bytes);

/* From now on the device has so much for the pool; returns what held before. */
uint64_t gm_pool_model_set_limit(struct gm_pool_model *model, uint64_t bytes);

#endif
