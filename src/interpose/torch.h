/*
 * Which calls PyTorch's caching allocator makes (torch.c has its hooks).
 */
#ifndef GM_INTERPOSE_TORCH_H
#define GM_INTERPOSE_TORCH_H

#include "api/api.h"
#include <stdbool.h>

/* True for a call from libc10_cuda: memory it takes is a segment (GM_ALLOC_TORCH). Any thread. */
bool gm_torch_call(const struct gm_call *call);

#endif
