/*
 * Allocators that a program gave to PyTorch (torch.cuda.memory.CUDAPluggableAllocator).
 */
#ifndef GM_RECORDER_PLUGGABLE_H
#define GM_RECORDER_PLUGGABLE_H

#include "stack/stack.h"
#include "store/writer.h"

/* Looks for PyTorch's part of it among the loaded objects, if it is not known. Any thread. */
void gm_pluggable_look(void);

/*
 * What an allocation is that was called from `caller` with this stack (GM_TABLE_STACKS, just taken by
 * the calling thread): GM_ALLOC_PLUGGABLE where such an allocator stands in the place of PyTorch's own;
 * GM_ALLOC_TORCH where PyTorch's own divides what it took by it (a MemPool); else 0. Without PyTorch a
 * look at three words; with it the stack is taken once more, once for each stack. Any thread, no lock.
 */
uint16_t gm_pluggable_flags_now(uint32_t stack, uintptr_t caller);

/* Both are atomic. */
struct gm_pluggable_state {
	uint32_t known;	  /* unloads at the look-up + 1; 0: not found */
	uint32_t modules; /* that stacks had led through by then */
};
extern struct gm_pluggable_state gm_pluggable __attribute__((visibility("hidden")));

/* A stack through a library that none led through before may be the first through PyTorch's. */
static inline uint16_t gm_pluggable_flags(uint32_t stack, uintptr_t caller)
{
	if (!__atomic_load_n(&gm_pluggable.known, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&gm_file->tables[GM_TABLE_MODULES].count, __ATOMIC_RELAXED) ==
		    __atomic_load_n(&gm_pluggable.modules, __ATOMIC_RELAXED))
		return 0;
	return gm_pluggable_flags_now(stack, caller);
}

/* Stacks are numbered anew: in the child of a fork that opens a file. Single thread. */
void gm_pluggable_forget(void);

#endif
