/*
 * The effect of allocations on PyTorch's record of a device (struct gm_torch_record), and the rule
 * that says what counts as a segment of PyTorch's caching allocator. Used by the tracker, the
 * replay of histories and the importer of snapshots.
 *
 * Who calls these functions has exclusive access to the records that they change; on that condition
 * they are safe on any thread and in signal handlers. Sizes are bytes.
 */
#ifndef GM_ACCOUNT_TORCH_RECORD_H
#define GM_ACCOUNT_TORCH_RECORD_H

#include "account/kinds.h"

/* Sizes of PyTorch's CUDACachingAllocator (c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize,
 * kSmallSize, kSmallBuffer): blocks are multiples of the least one; small ones come from segments
 * of their own. */
#define GM_TORCH_MIN_BLOCK_BYTES     512u
#define GM_TORCH_SMALL_BYTES	     (1ull << 20)
#define GM_TORCH_SMALL_SEGMENT_BYTES (2ull << 20)

/* The part that an allocation has in PyTorch's record. */
enum gm_torch_part {
	GM_TORCH_NO_PART,
	GM_TORCH_BLOCK,	  /* a block that PyTorch handed out */
	GM_TORCH_SEGMENT, /* memory that PyTorch divides: what it reserved */
	GM_TORCH_TENSOR,  /* with backend:cudaMallocAsync: each tensor is an allocation of the
			     driver's */
	GM_TORCH_FOREIGN  /* taken by an allocator that the program gave to PyTorch: reserved,
			     divided unseen */
};

/*
 * Memory behind an expandable segment counts when it is mapped: the mapping is the segment, not the
 * handle. A segment is one also while no block lies in it. GM_SITE_TORCH tells the same of a site
 * whose allocation's record is gone.
 */
static inline enum gm_torch_part gm_torch_part(const struct gm_alloc_record *alloc)
{
	if (alloc->level == GM_LEVEL_TORCH)
		return GM_TORCH_BLOCK;
	if (alloc->flags & GM_ALLOC_PLUGGABLE)
		return GM_TORCH_FOREIGN;
	if (!(alloc->flags & GM_ALLOC_TORCH))
		return GM_TORCH_NO_PART;
	if (alloc->space == GM_SPACE_MAPPING ||
	    (alloc->space == GM_SPACE_POINTER && gm_kind_in(GM_KINDS_TORCH, alloc->kind)))
		return GM_TORCH_SEGMENT;
	return gm_kind_in_pool(alloc->kind) ? GM_TORCH_TENSOR : GM_TORCH_NO_PART;
}

/* True if an allocation of this part changes the reserved bytes. */
static inline bool gm_torch_reserves(enum gm_torch_part part)
{
	return part == GM_TORCH_SEGMENT || part == GM_TORCH_FOREIGN;
}

/* ---- the steps ---- */

static inline void gm_torch_raise_peaks(struct gm_torch_record *record)
{
	if (record->allocated_bytes > record->allocated_peak_bytes)
		record->allocated_peak_bytes = record->allocated_bytes;
	if (record->reserved_bytes > record->reserved_peak_bytes)
		record->reserved_peak_bytes = record->reserved_bytes;
}

/* PyTorch's own totals take the place of ours now and then, so less may be left than is freed. */
static inline void gm_torch_take(uint64_t *from, uint64_t bytes)
{
	*from = *from > bytes ? *from - bytes : 0;
}

/* A block, or a tensor in its place; peaks are raised apart (gm_torch_raise_peaks). */
static inline void gm_torch_block_add(struct gm_torch_record *record, uint64_t bytes)
{
	record->allocated_bytes += bytes;
	record->allocated_total_bytes += bytes;
	record->allocations++;
}

static inline void gm_torch_block_remove(struct gm_torch_record *record, uint64_t bytes)
{
	gm_torch_take(&record->allocated_bytes, bytes);
	record->freed_total_bytes += bytes;
	record->frees++;
}

/* A segment, or memory of a foreign allocator. A round ends when memory is taken after some was
 * given back. */
static inline void gm_torch_segment_add(struct gm_torch_record *record, uint64_t bytes)
{
	record->rounds += record->releasing;
	record->releasing = 0;
	record->reserved_bytes += bytes;
	record->reserved_total_bytes += bytes;
	gm_torch_raise_peaks(record);
}

static inline void gm_torch_segment_remove(struct gm_torch_record *record, uint64_t bytes)
{
	gm_torch_take(&record->reserved_bytes, bytes);
	record->released_total_bytes += bytes;
}

/*
 * Driver memory of PyTorch's came. `blocks_seen`: PyTorch told of blocks, so its tensors are these.
 * Returns what the allocation is to the record, GM_TORCH_NO_PART where it changed nothing.
 */
static inline enum gm_torch_part gm_torch_add_driver(struct gm_torch_record *record,
						     const struct gm_alloc_record *alloc,
						     bool blocks_seen)
{
	enum gm_torch_part part = gm_torch_part(alloc);

	if (part == GM_TORCH_FOREIGN)
		record->allocator = GM_TORCH_PLUGGABLE;
	if (part == GM_TORCH_SEGMENT && alloc->space == GM_SPACE_MAPPING)
		record->allocator = GM_TORCH_EXPANDABLE;
	if (gm_torch_reserves(part)) {
		gm_torch_segment_add(record, alloc->bytes);
	} else if (part == GM_TORCH_TENSOR && !blocks_seen) {
		record->allocator = GM_TORCH_ASYNC;
		gm_torch_block_add(record, alloc->bytes);
		gm_torch_raise_peaks(record);
	} else {
		part = GM_TORCH_NO_PART;
	}
	return part;
}

/*
 * Takes a removed allocation of the driver out of the record; the counterpart of
 * gm_torch_add_driver.
 */
static inline enum gm_torch_part gm_torch_remove_driver(struct gm_torch_record *record,
							const struct gm_alloc_record *alloc)
{
	enum gm_torch_part part = gm_torch_part(alloc);

	if (gm_torch_reserves(part))
		gm_torch_segment_remove(record, alloc->bytes);
	else if (part == GM_TORCH_TENSOR && record->allocator == GM_TORCH_ASYNC)
		gm_torch_block_remove(record, alloc->bytes);
	else
		part = GM_TORCH_NO_PART;
	return part;
}

/* Takes an event back, as gm_count_shift does. */
static inline void gm_torch_shift(struct gm_torch_record *record,
				  const struct gm_alloc_record *alloc, int live, int allocated,
				  int freed)
{
	uint64_t live_bytes = (uint64_t)live * alloc->bytes,
		 in = (uint64_t)allocated * alloc->bytes, out = (uint64_t)freed * alloc->bytes;
	enum gm_torch_part part = gm_torch_part(alloc);

	if (part == GM_TORCH_BLOCK ||
	    (part == GM_TORCH_TENSOR && record->allocator == GM_TORCH_ASYNC)) {
		record->allocated_bytes += live_bytes;
		record->allocated_total_bytes += in;
		record->freed_total_bytes += out;
		record->allocations += (uint64_t)allocated;
		record->frees += (uint64_t)freed;
	} else if (gm_torch_reserves(part)) {
		record->reserved_bytes += live_bytes;
		record->reserved_total_bytes += in;
		record->released_total_bytes += out;
	}
}

/* ---- the record and the level of its blocks ---- */

/*
 * Returns the counts that hold. Another thread may be counting: what it counts meanwhile may be in
 * them or not.
 */
static inline struct gm_block_counts gm_copy_counts(const struct gm_torch_record *record)
{
	struct gm_block_counts copy;
	uint64_t turn;

	do {
		const struct gm_block_counts *counts;

		turn = __atomic_load_n(&record->turn, __ATOMIC_ACQUIRE);
		counts = &record->counts[turn >> 1 & 1];
		copy.allocated_bytes = __atomic_load_n(&counts->allocated_bytes, __ATOMIC_RELAXED);
		copy.allocations = __atomic_load_n(&counts->allocations, __ATOMIC_RELAXED);
		copy.frees = __atomic_load_n(&counts->frees, __ATOMIC_RELAXED);
		copy.allocated_total_bytes =
			__atomic_load_n(&counts->allocated_total_bytes, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (turn >> 1 != __atomic_load_n(&record->turn, __ATOMIC_RELAXED) >> 1);
	return copy;
}

/* The extremes of the timeline's open point as the level counts. */
static inline uint64_t gm_lower_bytes(const struct gm_torch_record *record)
{
	return __atomic_load_n(&record->lower_bytes, __ATOMIC_RELAXED) - record->beyond_bytes;
}

static inline uint64_t gm_upper_bytes(const struct gm_torch_record *record)
{
	return __atomic_load_n(&record->upper_bytes, __ATOMIC_RELAXED) - record->beyond_bytes;
}

/* Returns the events that the counts are ahead of the level. */
static inline uint64_t gm_level_behind(const struct gm_level_record *level,
				       const struct gm_block_counts *counts)
{
	return counts->allocations + counts->frees - level->allocations - level->frees;
}

/* The level's figures become what the record counted of its blocks (struct gm_torch_record,
 * `counting`). */
static inline void gm_level_follow(struct gm_level_record *level,
				   const struct gm_torch_record *record,
				   const struct gm_block_counts *counts)
{
	level->current_bytes = counts->allocated_bytes - record->beyond_bytes;
	level->current_count = counts->allocations - counts->frees;
	level->allocations = counts->allocations;
	level->frees = counts->frees;
	level->allocated_bytes = counts->allocated_total_bytes;
	level->freed_bytes = level->allocated_bytes - level->current_bytes;
}

/* The record's figures of blocks become what their level says (struct gm_torch_record, `by_level`).
 */
static inline void gm_torch_follow(struct gm_torch_record *record,
				   const struct gm_level_record *level)
{
	record->allocated_bytes = level->current_bytes + record->beyond_bytes;
	record->allocations = level->allocations;
	record->frees = level->frees;
	record->allocated_total_bytes = level->allocated_bytes;
	record->freed_total_bytes = level->freed_bytes;
}

/* The record can follow the level: they counted the same. False where blocks found no room in the
 * file. */
static inline bool gm_torch_follows(const struct gm_torch_record *record,
				    const struct gm_level_record *level)
{
	return record->allocations == level->allocations && record->frees == level->frees &&
	       record->allocated_total_bytes == level->allocated_bytes &&
	       record->freed_total_bytes == level->freed_bytes;
}

#endif
