/*
 * Recognises the calls that PyTorch's caching allocator makes; interpose/torch_hooks.c has its
 * hooks.
 */
#ifndef GM_RECORDER_TORCH_H
#define GM_RECORDER_TORCH_H

#include "recorder/state/libraries.h"
#include <stdbool.h>
#include <stdint.h>

/*
 * A word for each call site: pc << 16 | 15 bits of gm_unloads << 1 | the call is PyTorch's
 * (atomic).
 */
#define GM_TORCH_CALLERS 64
extern uint64_t gm_torch_callers[GM_TORCH_CALLERS] __attribute__((visibility("hidden")));

static inline uint64_t gm_torch_word(uintptr_t pc)
{
	return (uint64_t)pc << 16 | (gm_unloads() & 0x7fff) << 1;
}

static inline uint64_t *gm_torch_slot(uintptr_t pc)
{
	return &gm_torch_callers[(pc >> 4) % GM_TORCH_CALLERS];
}

/* The slow path of gm_torch_call, for a call site that is not known. */
bool gm_torch_call_slow(uintptr_t pc);

/* True for a call from libc10_cuda, whose allocations are segments (GM_ALLOC_TORCH). Any thread. */
static inline bool gm_torch_call(uintptr_t pc)
{
	uint64_t known = __atomic_load_n(gm_torch_slot(pc), __ATOMIC_RELAXED);

	if (__builtin_expect((known ^ gm_torch_word(pc)) > 1, 0))
		return gm_torch_call_slow(pc);
	return known & 1;
}

#endif
