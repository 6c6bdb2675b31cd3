/*
 * The wrappers of the runtime's functions that dlsym gives out (runtime.c).
 */
#ifndef GM_INTERPOSE_RUNTIME_H
#define GM_INTERPOSE_RUNTIME_H

#include "api/api.h"

struct gm_object;

/*
 * The wrapper that stands for this very cudart in front of its function `real`, or `real` itself
 * where there are too many cudarts. Any thread.
 */
void *gm_runtime_wrapper_of(enum gm_function function, void *real, const struct gm_object *cudart);

#endif
