/*
 * What the files of resolve.h share: the lock of their tables, rows by name, and what each of them
 * tells the others. Safe from any thread.
 */
#ifndef GM_INTERPOSE_RESOLVE_PARTS_H
#define GM_INTERPOSE_RESOLVE_PARTS_H

#include "api/api.h"
#include <stdbool.h>
#include <stdint.h>

struct gm_object;

/* The lock `resolve` of the own page; false where a signal handler came into this thread's own
 * hold. */
bool gm_lock_resolve(void);
void gm_unlock_resolve(void);

/* True while this thread holds the lock. */
bool gm_resolving(void);

/*
 * The first row of that name (the runtime has two of some, one per signature) that is the driver's
 * or of one of `majors`; GM_FUNCTIONS if there is none.
 */
enum gm_function gm_row_named(const char *name, unsigned majors);

/* Finds every driver row in the loaded libcuda at the first call; false without libcuda. */
bool gm_ready_driver(void);

/* True for an address of libcuda, once the driver is ready. */
bool gm_in_libcuda(const void *address);

/* Puts us in front of a hook's function that came back instead of the driver's: our wrapper. */
void *gm_adopt(enum gm_function function, void *hook);

/* The CUDA major of a cudart, 0 if it cannot be told. */
unsigned gm_cudart_major(const struct gm_object *cudart);

/* The wrapper that stands for this very cudart, or `real` itself where there are too many. */
void *gm_wrap_runtime(enum gm_function function, void *real, const struct gm_object *cudart);

/* True once gm_wrap_runtime() gave something out. */
bool gm_runtimes_handed_out(void);

/* With the lock held: drop what is known of a libcuda, of cudarts, that are loaded no more. */
void gm_forget_driver(void);
void gm_forget_runtimes(void);

#endif
