/*
 * What retries.c and ooms.c offer to the rest of track/. Called under the tracker's lock.
 */
#ifndef GM_TRACK_RETRIES_H
#define GM_TRACK_RETRIES_H

#include "account/torch_record.h"
#include "track/peaks.h"
#include "track/state.h"
#include "track/torch.h"

#define GM_ERROR_OUT_OF_MEMORY 2 /* in both layers of CUDA */

/* ---- retries.c ---- */

/* An allocation call failed for want of memory. */
void gm_retry_failed(const struct gm_event *event, uint32_t site);

/* An allocation call succeeded, or failed for another reason: what is open on this thread may end.
 */
void gm_retry_served(const struct gm_event *event);
void gm_retry_other(const struct gm_event *event);

/* Threads with a chain that is open. */
extern unsigned gm_open_chains __attribute__((visibility("hidden")));

/* PyTorch handed out a block on this thread, or gave up. */
void gm_retry_block(void);
void gm_retry_torch_oom(const struct gm_event *event);

/* Driver memory was freed on this thread, `alloc`'s or a mapping's: flushed, if a chain is open. */
void gm_retry_freed_inside(const struct gm_alloc_record *alloc);

static inline void gm_retry_freed(const struct gm_alloc_record *alloc)
{
	if (__builtin_expect(gm_open_chains != 0, 0))
		gm_retry_freed_inside(alloc);
}

void gm_retries_reset(void);

/* ---- ooms.c ---- */

/* Records an OOM with the live table of this moment. Its ticket; 0 when the file is full. */
uint32_t gm_oom_open(const struct gm_event *event);

/* The same chain failed again: the record is now about this moment. */
void gm_oom_again(uint32_t ticket, const struct gm_event *event);

/* PyTorch gave up: what it asked for is what was asked for. */
void gm_oom_torch(uint32_t ticket, const struct gm_event *event, bool limit);

/* The request was served after all. */
void gm_oom_withdraw(uint32_t ticket);

void gm_ooms_reset(void);

/* ---- torch.c ---- */

/* Driver memory of PyTorch's allocator (GM_ALLOC_TORCH) came or went: a segment, a mapping of one.
 */
void gm_torch_add(const struct gm_alloc_record *alloc);
void gm_torch_remove(const struct gm_alloc_record *alloc);

/* The same memory was given back by a call with this stack: before it ends. */
void gm_torch_released(const struct gm_alloc_record *alloc, uint32_t stack);

/* The default pool was asked: with backend:cudaMallocAsync it is what PyTorch holds. */
void gm_torch_pool(const struct gm_pool_record *pool);

struct gm_torch_state {
	struct gm_torch_record *devices[GM_SLOTS];
	bool seen; /* a block was (atomic) */
};
extern struct gm_torch_state gm_torch_state __attribute__((visibility("hidden")));

struct gm_torch_record *gm_make_torch(int device);

/* The record of a device, NULL if there is none. */
static inline struct gm_torch_record *gm_torch_known(int device)
{
	return gm_torch_state.devices[gm_slot(device)];
}

/* The same where its blocks are told, NULL behind an allocator of the program's own. */
static inline struct gm_torch_record *gm_torch_with_blocks(int device)
{
	struct gm_torch_record *record = gm_torch_known(device);

	return record && record->allocator != GM_TORCH_PLUGGABLE ? record : NULL;
}

/* The same, made at first use; NULL when the file is full. */
static inline struct gm_torch_record *gm_torch(int device)
{
	struct gm_torch_record *record = gm_torch_known(device);

	return __builtin_expect(record != NULL, 1) ? record : gm_make_torch(device);
}

void gm_torch_reset(void);

/* Blocks, in all cases; blocks.c has the usual ones. */
void gm_torch_block(const struct gm_event *event, const struct gm_torch_totals *totals);
void gm_torch_block_free(struct gm_event *event, const struct gm_torch_totals *totals);

/* After a block was handed out: the moment of the peak is that of the block which last reached it. */
static inline void gm_torch_raise_holes(const struct gm_torch_record *record)
{
	if (record->allocated_bytes >= record->allocated_peak_bytes && record->allocated_bytes)
		gm_peak_reach(record->device, GM_HOLES_TORCH, record->allocated_bytes,
			      record->reserved_bytes);
}

/* Ours and PyTorch's own totals after a block came or went. */
static inline void gm_torch_compare(struct gm_torch_record *record, const struct gm_torch_totals *totals)
{
	if (record->allocated_bytes != totals->allocated_bytes ||
	    record->reserved_bytes != totals->reserved_bytes)
		record->mismatches++;
	record->allocated_bytes = totals->allocated_bytes;
	if (record->reserved_bytes != totals->reserved_bytes) {
		record->reserved_bytes = totals->reserved_bytes;
		gm_timeline(record->device, GM_SERIES_TORCH_RESERVED, record->reserved_bytes);
	}
	gm_torch_raise_peaks(record);
}

/* ledger.c */
void gm_ledger_reset(void);

#endif
