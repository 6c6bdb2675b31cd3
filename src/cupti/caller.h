/*
 * The program's frame in a stack that begins inside a callback.
 */
#ifndef GM_CUPTI_CALLER_H
#define GM_CUPTI_CALLER_H

#include <stdint.h>

/*
 * The return address of the innermost frame that is neither ours nor of CUDA's libraries: what a
 * wrapper would have as its own return address. 0 if the unwinder gave none, or stacks are off.
 */
uintptr_t gm_cupti_caller(void);

#endif
