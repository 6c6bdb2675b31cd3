/*
 * Allocators that a program gave to PyTorch (torch.cuda.memory.CUDAPluggableAllocator).
 */
#ifndef GM_RECORDER_PLUGGABLE_H
#define GM_RECORDER_PLUGGABLE_H

#include "stack/stack.h"

/* Looks for PyTorch's part of them among the loaded objects, if that is not known. Any thread. */
void gm_pluggable_find(void);

/*
 * The flags of an allocation that was called from `caller` with this stack, which the calling
 * thread has just captured: GM_ALLOC_PLUGGABLE where such an allocator stands in the place of
 * PyTorch's own, GM_ALLOC_TORCH where PyTorch's own divides the memory that it got from such an
 * allocator (a MemPool), else 0. Costs a look at three words without PyTorch, and one more capture
 * of each stack with it. Any thread, no lock.
 */
uint16_t gm_pluggable_flags_slow(uint32_t stack, uintptr_t caller);

struct gm_pluggable_state {
	uint32_t known;	  /* gm_unloads at the look-up, plus 1; 0: not found (atomic) */
	uint32_t modules; /* gm_stack_modules at the last look (atomic) */
};
extern struct gm_pluggable_state gm_pluggable __attribute__((visibility("hidden")));

/* Returns whether PyTorch's part of such allocators was found: the stacks are then looked at. */
static inline bool gm_pluggable_known(void)
{
	return __atomic_load_n(&gm_pluggable.known, __ATOMIC_RELAXED) != 0;
}

/* A stack through a library that no stack led through before may be the first through PyTorch's. */
static inline uint16_t gm_pluggable_flags(uint32_t stack, uintptr_t caller)
{
	if (__builtin_expect(!gm_pluggable_known() &&
				     gm_stack_modules() == __atomic_load_n(&gm_pluggable.modules,
									   __ATOMIC_RELAXED),
			     1))
		return 0;
	return gm_pluggable_flags_slow(stack, caller);
}

/* Stacks are numbered anew, in the child of a fork that opens a file. Single thread. */
void gm_pluggable_forget(void);

#endif
