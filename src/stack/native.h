/*
 * Native return addresses of the calling thread, by whichever unwinder works here. Knows nothing of
 * Python, modules or the file.
 */
#ifndef GM_STACK_NATIVE_H
#define GM_STACK_NATIVE_H

#include "stack/unwinder.h"
#include "store/hot.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct gm_unwinder gm_unwinder_tables, gm_unwinder_libunwind, gm_unwinder_libgcc;

/*
 * Chooses the first unwinder that passes a self-test. Opens libraries: only where that is allowed
 * (at the first driver look-up). `only` names one; NULL for the usual order. False if there is
 * none, then walks have no frames.
 */
bool gm_native_init(const char *only);

/*
 * From now on each walk by the tables is compared with libunwind's, see unwinder_check.h. False if
 * there are no tables or no libunwind here.
 */
bool gm_native_check(void (*log)(const char *line));

/* Code was unloaded: forget what was learnt of it. Any thread. */
void gm_native_code_unloaded(void);

/* In the child of a fork, before its first walk. */
void gm_native_in_child(void);

const char *gm_native_name(void);

/* Turns the cache of walks on or off, for unwinders that can use it; at first it is on. */
void gm_native_use_cache(bool keep);

/* They do, and it can. */
extern GM_HIDDEN bool gm_native_cached;

/* As gm_unwinder.walk; no frames without an unwinder. Any thread. */
void gm_native_walk(struct gm_walk *walk);

struct gm_object;

/*
 * A library by name or path, loaded if it is not yet, kept for good, out of everybody's scope. Only
 * where loading is allowed (at the first driver look-up). False if it cannot be had.
 */
bool gm_library_open(const char *name, struct gm_object *object);

/* The shim's own code. */
bool gm_native_is_own(uintptr_t pc);

#endif
