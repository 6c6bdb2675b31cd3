/*
 * The real functions behind the wrappers, for the wrappers (resolve_driver.c, resolve_runtime.c).
 * All look-ups are in the loaded objects' own tables (recorder/libraries.h).
 */
#ifndef GM_INTERPOSE_RESOLVE_H
#define GM_INTERPOSE_RESOLVE_H

#include "api/api.h"
#include <stdbool.h>
#include <stddef.h>

#define GM_INSTANCES 4 /* loaded cudarts whose functions dlsym can give out wrapped */

/* The driver's own functions, NULL until libcuda is loaded. Indexed by enum gm_function. */
extern void *gm_driver_real[GM_FUNCTIONS] __attribute__((visibility("hidden")));

/*
 * The real driver function of a row, found in libcuda (or in a hook between it and the shim) at
 * first use; NULL without libcuda. Any thread.
 */
void *gm_driver_search(enum gm_function function);

static inline void *gm_driver_find(enum gm_function function)
{
	void *real = gm_driver_real[function];

	return __builtin_expect(real != NULL, 1) ? real : gm_driver_search(function);
}

/*
 * The real runtime function for a call that came in at the wrapper of `major` (11, 12, 13) from the
 * code at `caller`: the one that the caller's object would have bound to without the shim. NULL if
 * there is none. Cached by call site. Any thread.
 */
void *gm_runtime_find(enum gm_function function, unsigned major, uintptr_t caller);

/* The real runtime function of the loaded cudart that dlsym found for `instance`. */
void *gm_runtime_instance_real(unsigned instance, enum gm_function function);

#endif
