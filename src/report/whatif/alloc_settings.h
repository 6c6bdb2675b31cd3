/*
 * Settings of PyTorch's caching allocator: PYTORCH_CUDA_ALLOC_CONF as text and as figures, by the
 * rules of a version.
 */
#ifndef GM_REPORT_WHATIF_ALLOC_SETTINGS_H
#define GM_REPORT_WHATIF_ALLOC_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_ROUNDUP_INTERVALS 16

/*
 * The differences between versions of c10/cuda/CUDACachingAllocator.cpp and its settings. One row
 * covers the versions from `first` to the one before the next row's; the last row covers one.
 */
struct gm_torch_rules {
	unsigned first;		    /* 206: 2.6 */
	bool shared_settings;	    /* c10/core/AllocatorConfig reads them: 2.10 */
	bool whole_fraction_limits; /* a memory fraction of 1 is a limit, too: until 2.9 */
};

#define GM_TORCH_FIRST 206u
#define GM_TORCH_LAST  212u

/* The rules of a version, 207 for 2.7; NULL for one that is not known. */
const struct gm_torch_rules *gm_torch_rules(unsigned version);

struct gm_torch_settings {
	bool expandable;
	uint64_t max_split_bytes;    /* UINT64_MAX: none */
	uint64_t max_rounding_bytes; /* max_non_split_rounding_mb */
	double gc_threshold;	     /* 0: none */
	double fraction;	     /* per_process_memory_fraction; 0: none */
	uint64_t roundup_divisions[GM_ROUNDUP_INTERVALS];
	bool rounds; /* any of them is over 1 */
	/*
	 * The driver's pool of stream-ordered memory instead of PyTorch's own allocator
	 * (backend:cudaMallocAsync), and what the pool keeps when a stream is waited for.
	 */
	bool driver_pool;
	uint64_t release_threshold_bytes;
};

/* PyTorch's defaults. */
struct gm_torch_settings gm_torch_settings_default(void);

/*
 * Reads a setting as PyTorch does; "" and "default" are the defaults. release_threshold:SIZE, which
 * PyTorch does not know, is the attribute of the driver's pool. False if PyTorch would not start
 * with it, or if what it asks for is not modelled: `error` then says which, half a sentence.
 */
bool gm_torch_settings_read(struct gm_torch_settings *settings, const char *text,
			    const struct gm_torch_rules *rules, char *error, size_t error_bytes);

/* Bytes of the block for a request of this size, before anything is left unsplit. */
uint64_t gm_torch_round_size(const struct gm_torch_settings *settings, uint64_t bytes);

/* Bytes of the segment that is made for a block of this size without expandable segments. */
uint64_t gm_torch_segment_size(uint64_t bytes);

#endif
