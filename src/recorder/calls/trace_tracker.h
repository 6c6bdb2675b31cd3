/*
 * The trace of PyTorch's own caching allocator, for the complete history.
 */
#ifndef GM_RECORDER_TRACE_TRACKER_H
#define GM_RECORDER_TRACE_TRACKER_H

#include "stack/elf_symbols.h"

/*
 * The allocator in `c10`, which is libc10_cuda, has just called the driver in this thread: asks it
 * for its trace, if a complete history is kept that no block is in yet. Does so once in a process,
 * and not at all if anything about the allocator is not as expected: then blocks are recorded as
 * the hooks report them. Any thread; without the tracker's lock.
 */
void gm_trace_tracker_attach(const struct gm_object *c10);

#endif
