/*
 * Functions shared by the files that find the real functions behind the wrappers: the lock of their
 * tables, rows by name (names.c), and the tables' functions (resolve_driver.c, resolve_runtime.c).
 * Safe from any thread.
 */
#ifndef GM_INTERPOSE_INTERNAL_H
#define GM_INTERPOSE_INTERNAL_H

#include "api/api.h"
#include <stdbool.h>
#include <stdint.h>

struct gm_object;

/*
 * Acquires the fork page's lock `resolve`; false in a signal handler that interrupted its holder.
 */
bool gm_lock_resolve(void);
void gm_unlock_resolve(void);

/* True while this thread holds the lock. */
bool gm_resolving(void);

/*
 * The first row of that name (the runtime has two of some, one per signature) that is the driver's
 * or of one of `majors`; GM_FUNCTIONS if there is none.
 */
enum gm_function gm_row_named(const char *name, unsigned majors);

/*
 * Finds every driver row in the loaded libcuda at the first call; false without libcuda. The first
 * call opens the libraries that the recorder needs (recorder/process/open_libraries.h).
 */
bool gm_ready_driver(void);

/* Finds every driver row without opening anything, for a call from outside the program. */
bool gm_find_driver(void);

/* True once a look-up or a call of the driver's reached the shim. */
bool gm_driver_seen(void);

/* True for an address of libcuda, once the driver is ready. */
bool gm_in_libcuda(const void *address);

/* The row of a driver's function that was found or adopted; GM_FUNCTIONS of any other. */
enum gm_function gm_driver_row_of(const void *real);

/* A hook's function stands for the row's from now on; false where it cannot. */
bool gm_driver_adopt(enum gm_function function, void *hook);

/* The CUDA major of a cudart, 0 if it is not known. */
unsigned gm_cudart_major(const struct gm_object *cudart);

/*
 * The instance that stands for this very cudart, whose function `real` is from now on the
 * instance's (gm_runtime_instance_real); GM_INSTANCES where there are too many cudarts.
 */
unsigned gm_runtime_instance(enum gm_function function, void *real, const struct gm_object *cudart);

/* True once an instance stands for a cudart. */
bool gm_has_runtime_instances(void);

/* Drop what is known of a libcuda, and of cudarts, that are no longer loaded. The lock is held. */
void gm_forget_driver(void);
void gm_forget_runtimes(void);

#endif
