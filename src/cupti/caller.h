/*
 * The program's frame in a stack that begins inside a callback.
 */
#ifndef GM_CUPTI_CALLER_H
#define GM_CUPTI_CALLER_H

#include <stdint.h>

/*
 * The return address of the innermost frame that belongs neither to this library nor to CUDA's: a
 * wrapper would have it as its own return address. 0 if the unwinder finds none, or stacks are off.
 */
uintptr_t gm_cupti_caller(void);

#endif
