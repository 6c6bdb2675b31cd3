/*
 * Allocators that a program gave to PyTorch (torch.cuda.memory.CUDAPluggableAllocator).
 */
#ifndef GM_INTERPOSE_PLUGGABLE_H
#define GM_INTERPOSE_PLUGGABLE_H

#include "stack/stack.h"

/* Looks for PyTorch's part of it among the loaded objects, if it is not known. Any thread. */
void gm_pluggable_look(void);

/*
 * What an allocation with this stack is: GM_ALLOC_PLUGGABLE where such an allocator stands in the
 * place of PyTorch's own; GM_ALLOC_TORCH where PyTorch's own divides what it took by it (a MemPool);
 * else 0. Any thread, no lock.
 */
uint16_t gm_pluggable_flags(const struct gm_raw_stack *raw);

#endif
