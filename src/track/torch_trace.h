/*
 * The trace of PyTorch's allocator of its own blocks, for the complete history: the bytes that
 * were asked for, the stream, the pool, and frees that wait for streams. Its trace of an allocation
 * or of a free precedes the hook's report of it, in the same thread and under the allocator's lock.
 */
#ifndef GM_TRACK_TORCH_TRACE_H
#define GM_TRACK_TORCH_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/* A block as it was asked for. `pool` as in GM_OP_TORCH_POOL. */
struct gm_torch_request {
	uint64_t block, bytes, stream, pool;
};

/*
 * The allocator is traced from now on. A block that comes without its request, or with one that
 * does not fit it, ends that for good.
 */
void gm_torch_trace_start(void);
bool gm_torch_traced(void);

/* The calling thread is about to report the block that it asked for. Changes nothing else. */
void gm_torch_trace_request(const struct gm_torch_request *request);

/* The calling thread is about to report that this block was given back. Changes nothing else. */
void gm_torch_trace_free(uint64_t block);

/*
 * A free is completed. Returns true if it is that which the calling thread is about to report, and
 * false if it is one that waited for streams: then gm_torch_trace_waited is to be called.
 */
bool gm_torch_trace_done(uint64_t block);

/* Streams no longer use what was this block. Keeps errno. */
void gm_torch_trace_waited(uint64_t block, int device);

/* ---- for track/, under the lock, while a history is kept ---- */

/* A block is about to be added, with that size; or the block that is about to be removed. */
void gm_torch_trace_add(uint64_t block, uint64_t bytes, int device);
void gm_torch_trace_drop(uint64_t block, int device);

/* A file was opened, or a period begins: nothing is written yet. */
void gm_torch_trace_reset(void);

#endif
