/*
 * The real functions of the driver, for its wrappers. All look-ups are in the loaded objects' own
 * tables (recorder/state/libraries.h).
 */
#ifndef GM_INTERPOSE_RESOLVE_DRIVER_H
#define GM_INTERPOSE_RESOLVE_DRIVER_H

#include "api/api.h"

#include <stddef.h>

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

#endif
