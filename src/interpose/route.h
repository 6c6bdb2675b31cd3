/*
 * The wrappers that programs get where they ask for the driver's functions.
 */
#ifndef GM_INTERPOSE_ROUTE_H
#define GM_INTERPOSE_ROUTE_H

#include "api/api.h"

/*
 * The wrapper of a driver function that CUDA gave out for `symbol`, else the function itself. Any
 * thread.
 */
void *gm_wrapper_of(void *real, const char *symbol, uint64_t flags);

/*
 * Returns the wrapper of a function that dlsym found for the driver's row `function`, else the
 * function itself.
 */
void *gm_driver_wrapper_of(enum gm_function function, void *real);

#endif
