/*
 * Allocators that a program gave to PyTorch (torch.cuda.memory.CUDAPluggableAllocator).
 */
#ifndef GM_INTERPOSE_PLUGGABLE_H
#define GM_INTERPOSE_PLUGGABLE_H

#include "stack/stack.h"

/* Looks for PyTorch's part of it among the loaded objects, if it is not known. Any thread. */
void gm_pluggable_look(void);

/*
 * What an allocation is that was called from `caller` with this stack (GM_TABLE_STACKS, just taken by
 * the calling thread): GM_ALLOC_PLUGGABLE where such an allocator stands in the place of PyTorch's own;
 * GM_ALLOC_TORCH where PyTorch's own divides what it took by it (a MemPool); else 0. Without PyTorch a
 * look at two words; with it the stack is taken once more, once for each stack. Any thread, no lock.
 */
uint16_t gm_pluggable_flags_now(uint32_t stack, uintptr_t caller);
extern uint32_t gm_pluggable_known __attribute__((visibility("hidden"))); /* unloads at the look-up + 1; 0: not found */

static inline uint16_t gm_pluggable_flags(uint32_t stack, uintptr_t caller)
{
	return __atomic_load_n(&gm_pluggable_known, __ATOMIC_RELAXED) ? gm_pluggable_flags_now(stack, caller) : 0;
}

/* Stacks are numbered anew: in the child of a fork that opens a file. Single thread. */
void gm_pluggable_forget(void);

#endif
