/*
 * PyTorch's memory on each device: the blocks that its caching allocator handed out, and the memory
 * that it took from the driver for them, beside PyTorch's own totals (account/torch_record.h has
 * the rules).
 *
 * What is reserved follows the driver's level, because PyTorch does not report segments. Each
 * block's hook passes what PyTorch itself counts; where our figures differ (segments of a user's
 * own pool, a shim that was loaded late) the difference is counted in `mismatches`, and PyTorch's
 * figures are taken over.
 */
#ifndef GM_TRACK_TORCH_MEMORY_H
#define GM_TRACK_TORCH_MEMORY_H

#include "account/torch_record.h"
#include "track/event.h"
#include "track/peaks.h"
#include "track/timeline.h"

/* True once a block of PyTorch was recorded. Any thread, without the lock. */
bool gm_track_torch_seen(void);

/* ---- for track/, under the lock ---- */

struct gm_torch_state {
	struct gm_torch_record *devices[GM_SLOTS];
	bool seen; /* a block was recorded (atomic) */
};
extern struct gm_torch_state gm_torch_state __attribute__((visibility("hidden")));

void gm_torch_reset(void);

/* The slow path of gm_torch_of. */
struct gm_torch_record *gm_add_torch(int device);

/* Returns the record of a device, NULL if there is none. */
static inline struct gm_torch_record *gm_known_torch(int device)
{
	return gm_torch_state.devices[gm_slot(device)];
}

/*
 * Returns the record of a device whose blocks are reported; NULL for an allocator of the program's
 * own.
 */
static inline struct gm_torch_record *gm_torch_with_blocks(int device)
{
	struct gm_torch_record *record = gm_known_torch(device);

	return record && record->allocator != GM_TORCH_PLUGGABLE ? record : NULL;
}

/* Returns the record of a device, made at its first use; NULL if the file is full. */
static inline struct gm_torch_record *gm_torch_of(int device)
{
	struct gm_torch_record *record = gm_known_torch(device);

	return __builtin_expect(record != NULL, 1) ? record : gm_add_torch(device);
}

/* Driver memory of PyTorch's allocator came or goes: a segment, or a mapping of one. */
void gm_torch_add(struct gm_alloc_record *alloc);
void gm_torch_remove(const struct gm_alloc_record *alloc);

/* Counts memory that is about to be given back by a call with this stack. */
void gm_torch_count_release(const struct gm_alloc_record *alloc, uint32_t stack);

/* Brings the level up to the counts of its blocks, while the record has `counting`. */
void gm_torch_follow_counts(const struct gm_torch_record *torch);

/* The default pool was queried: with backend:cudaMallocAsync it is what PyTorch holds. */
void gm_torch_follow_pool(const struct gm_pool_record *pool);

/* After a block was handed out: the peak is the moment of the block that last reached it. */
static inline void gm_torch_raise_holes(const struct gm_torch_record *record)
{
	if (record->allocated_bytes >= record->allocated_peak_bytes && record->allocated_bytes)
		gm_peak_set(record->device, GM_HOLES_TORCH, record->allocated_bytes,
			    record->reserved_bytes);
}

/*
 * After a block came or went: takes over PyTorch's own totals, and counts if they differ from ours.
 */
static inline void gm_torch_compare(struct gm_torch_record *record,
				    const struct gm_torch_totals *totals)
{
	if (record->allocated_bytes != totals->allocated_bytes ||
	    record->reserved_bytes != totals->reserved_bytes)
		record->mismatches++;
	record->allocated_bytes = totals->allocated_bytes;
	if (record->reserved_bytes != totals->reserved_bytes) {
		record->reserved_bytes = totals->reserved_bytes;
		gm_timeline_set(record->device, GM_SERIES_TORCH_RESERVED, record->reserved_bytes);
	}
	gm_torch_raise_peaks(record);
}

#endif
