/*
 * Finding the real functions and mapping them to our wrappers: dlsym, cuGetProcAddress, exported
 * names. Looks things up in the loaded objects' own tables (libraries.h).
 */
#ifndef GM_INTERPOSE_RESOLVE_H
#define GM_INTERPOSE_RESOLVE_H

#include "api/api.h"
#include <stdbool.h>
#include <stddef.h>

#define GM_INSTANCES	4 /* loaded cudarts whose functions dlsym can hand out wrapped */

/* The driver's own functions, NULL until libcuda is loaded. Indexed by enum gm_function. */
extern void *gm_driver_real[GM_FUNCTIONS] __attribute__((visibility("hidden")));

/* Our wrappers, filled by driver.c and runtime.c. */
extern void *const gm_driver_wrapper[GM_FUNCTIONS];
extern void *const gm_runtime_wrapper[GM_INSTANCES][GM_FUNCTIONS];

/*
 * The real driver function of a row, found in libcuda (or in a hook between it and us) at first
 * use; NULL without libcuda. Any thread.
 */
void *gm_driver_search(enum gm_function function);

static inline void *gm_driver_find(enum gm_function function)
{
	void *real = gm_driver_real[function];

	return __builtin_expect(real != NULL, 1) ? real : gm_driver_search(function);
}

/*
 * The real runtime function for a call that came in at the wrapper of `major` (11, 12, 13) from the
 * code at `caller`: what the caller's object would have bound to without us. NULL if there is none.
 * Cached by call site. Any thread.
 */
void *gm_runtime_find(enum gm_function function, unsigned major, uintptr_t caller);

/* The real runtime function of the loaded cudart that dlsym found for `instance`. */
void *gm_runtime_instance_real(unsigned instance, enum gm_function function);

/* Our wrapper for a pointer that CUDA handed out for `symbol`, else the pointer itself. */
void *gm_wrapper_of(void *real, const char *symbol, uint64_t flags);

/* At the start: the real dlsym and dlclose, and the table of names. */
void gm_resolve_init(void);

/* True once a driver look-up or call reached us. */
bool gm_driver_seen(void);

/* How often something was unloaded so far: what was remembered of addresses is to be looked at
 * again. */
extern uint32_t gm_generation __attribute__((visibility("hidden")));

static inline uint32_t gm_unloads(void)
{
	return __atomic_load_n(&gm_generation, __ATOMIC_ACQUIRE);
}

#endif
