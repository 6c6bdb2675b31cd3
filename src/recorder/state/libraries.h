/*
 * The loaded objects that matter here: libcuda, cudarts, the shim itself, what stands behind it,
 * and how often one was unloaded. They are found by the objects' own tables (stack/elf_symbols.h),
 * never by dlsym: a look-up must not wait for a thread that runs a constructor inside dlopen.
 * Everything here may be called from any thread.
 */
#ifndef GM_RECORDER_LIBRARIES_H
#define GM_RECORDER_LIBRARIES_H

#include "stack/elf_symbols.h"

#include <stdbool.h>
#include <stdint.h>

/* True for an address of the shim. */
bool gm_is_own(uintptr_t address);

/*
 * True for the shim and for other copies of it, from other files: a search for what stands behind
 * the shim passes over all of them, because the wrappers of two copies would lead to each other.
 * Sets *passed_own at the shim itself.
 */
bool gm_pass_shims(const struct gm_object *object, bool *passed_own);

/* True if another copy of the shim was loaded before this one, and records. */
bool gm_is_second_copy(void);

bool gm_is_libcuda(const struct gm_object *object);
bool gm_is_cudart(const struct gm_object *object);

/* Keeps LD_PRELOAD as it is, for gm_preloaded. Called once; single thread. */
void gm_preloads_init(void);

/* True for an object that LD_PRELOAD named at the start. */
bool gm_preloaded(const struct gm_object *object);

/* Finds the loaded libcuda; false without one. */
bool gm_find_libcuda(struct gm_object *libcuda);

/* True if libcuda is loaded in this process. */
bool gm_libcuda_loaded(void);

/*
 * The number of linker namespaces other than the shim's (dlmopen) that have a libcuda of their own,
 * which no preload reaches. Any thread, any context; no lock.
 */
unsigned gm_libcudas_elsewhere(void);

/*
 * For the constructor: true if libcuda is loaded already and comes after the shim. A program that
 * is linked against it reaches the shim first.
 */
bool gm_libcuda_linked(void);

/* True if the shim was loaded after the C library, and so by dlopen in a program at work. */
bool gm_loaded_late(void);

/* A symbol of the loaded libcuda, or NULL. */
void *gm_libcuda_symbol(const char *name);

/* The definition of a function that callers would reach without the shim. NULL if there is none. */
void *gm_next_symbol(const char *name);

/* Finds the definitions for those of several names whose element of `found` is NULL. */
void gm_next_symbols(const char *const *names, void **found, unsigned count);

/*
 * The number of objects that were unloaded so far (atomic): facts that were remembered of addresses
 * before are to be looked up again.
 */
extern uint32_t gm_unload_count __attribute__((visibility("hidden")));

static inline uint32_t gm_unloads(void)
{
	return __atomic_load_n(&gm_unload_count, __ATOMIC_ACQUIRE);
}

/* Counts an unloading. */
void gm_note_unload(void);

#endif
