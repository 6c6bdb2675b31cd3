/*
 * The real functions of the runtime, for its wrappers. All look-ups are in the loaded objects' own
 * tables (recorder/state/libraries.h).
 */
#ifndef GM_INTERPOSE_RESOLVE_RUNTIME_H
#define GM_INTERPOSE_RESOLVE_RUNTIME_H

#include "api/api.h"

#include <stdint.h>

#define GM_INSTANCES 4 /* loaded cudarts whose functions dlsym can give out wrapped */

/*
 * The real runtime function for a call that came in at the wrapper of `major` (11, 12, 13) from the
 * code at `caller`: the one that the caller's object would have bound to without the shim. NULL if
 * there is none. Cached by call site. Any thread.
 */
void *gm_runtime_find(enum gm_function function, unsigned major, uintptr_t caller);

/* The real runtime function of the loaded cudart that dlsym found for `instance`. */
void *gm_runtime_instance_real(unsigned instance, enum gm_function function);

#endif
