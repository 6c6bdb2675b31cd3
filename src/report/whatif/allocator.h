/*
 * A model of PyTorch's caching allocator on one device (c10/cuda/CUDACachingAllocator.cpp, class
 * DeviceCachingAllocator, versions 2.6 to 2.12): which memory it takes from the driver, hands out,
 * keeps and gives back. It knows addresses and sizes, and neither files nor time.
 *
 * The model is exact but for what no allocator decides: where the driver puts a segment (which
 * decides between free blocks of equal size), and when a stream is done with a block.
 */
#ifndef GM_REPORT_WHATIF_ALLOCATOR_H
#define GM_REPORT_WHATIF_ALLOCATOR_H

#include "report/whatif/address_space.h"
#include "report/whatif/alloc_settings.h"

#define GM_NO_BLOCK UINT32_MAX

/* The rule by which the driver places new segments. */
enum gm_model_placement {
	GM_PLACE_AS_DRIVER,
	GM_PLACE_UPWARDS,
	GM_PLACE_DOWNWARDS,
	GM_PLACE_SCATTERED
};

/*
 * Blocks are kept apart by pool and stream. Pool 0 is the allocator's own, others are private
 * pools of graphs.
 */
struct gm_model_pool {
	uint32_t pool;
	uint64_t stream;
};

/* A change of the memory that is taken from the driver. */
struct gm_model_change {
	uint64_t address;
	int64_t bytes; /* taken, or given back if negative */
};

struct gm_model_options {
	struct gm_torch_settings settings;
	const struct gm_torch_rules *rules;
	uint64_t device_bytes; /* the most that the driver can give PyTorch; UINT64_MAX: no limit */
	uint64_t total_bytes;  /* the device's memory, which fractions are of; UINT64_MAX unknown */
	double fraction;       /* of set_per_process_memory_fraction; 0: not called */
	const struct gm_model_pool *pools;
	unsigned pools_count;
	enum gm_model_placement placement;
	unsigned seed;				/* of a scattered placement */
	const struct gm_model_change *recorded; /* addresses of the segments to come, or NULL */
	unsigned recorded_count;
	bool log; /* keep changes[] */
};

struct gm_model_figures {
	uint64_t allocated_bytes, allocated_peak_bytes; /* handed out and not freed */
	uint64_t reserved_bytes, reserved_peak_bytes;	/* taken from the driver */
	uint64_t allocated_at_peak_bytes;		/* of the reserved peak */
	uint64_t segments; /* taken; with expandable segments mappings */
	uint64_t retries, ooms;
	uint64_t ties; /* free blocks that an address decided about, of different segments */
};

struct gm_model;

/* `options`, with what it points at, must outlive the model. */
struct gm_model *gm_model_new(const struct gm_model_options *options);
void gm_model_free(struct gm_model *model);

const struct gm_model_figures *gm_model_figures(const struct gm_model *model);

/* With `log`: what was taken and given back, in order. */
const struct gm_model_change *gm_model_changes(const struct gm_model *model, unsigned *count);

/*
 * A request of `bytes` for the pool with that number in `pools`. Returns a block, or GM_NO_BLOCK if
 * PyTorch would raise its out-of-memory error. A block's number is free for reuse when its free is
 * completed.
 */
uint32_t gm_model_alloc(struct gm_model *model, unsigned pool, uint64_t bytes);

/*
 * The program frees a block that streams still use; it can be handed out again once completed.
 * Returns what names this free.
 */
uint32_t gm_model_free_requested(struct gm_model *model, uint32_t block);

/* The streams are done. Does nothing if a retry has waited for them already. */
void gm_model_free_completed(struct gm_model *model, uint32_t request);

/* Requests and completes the free at once, for a block that no stream uses any more. */
void gm_model_free_block(struct gm_model *model, uint32_t block);

/* torch.cuda.empty_cache() */
void gm_model_empty_cache(struct gm_model *model);

/* From now on the driver can give PyTorch so much; returns what held before. */
uint64_t gm_model_set_limit(struct gm_model *model, uint64_t bytes);

/*
 * Returns the address of a block; with `recorded` as in the recorded run, but in expandable
 * segments.
 */
uint64_t gm_model_block_address(const struct gm_model *model, uint32_t block);

/* ---- a state to begin with ---- */

struct gm_model_found {
	uint64_t bytes;
	bool used, pending, unmapped;
	uint32_t block; /* out: its number, of a pending one that of its free */
};

/*
 * Adds a segment as it was found: its blocks in order, which fill it. `base` is where the addresses
 * of an expandable segment begin, and its own address of another.
 */
void gm_model_add_segment(struct gm_model *model, unsigned pool, bool small, bool expandable,
			  uint64_t address, uint64_t base, struct gm_model_found *found,
			  unsigned count);

#endif
