/*
 * The loaded objects that matter here: libcuda, cudarts, the shim itself, and what stands behind
 * it. By the objects' own tables (stack/elf_symbols.h), never by dlsym: a look-up must not wait for
 * a thread that runs a constructor inside dlopen. Everything here may be called from any thread.
 */
#ifndef GM_INTERPOSE_LIBRARIES_H
#define GM_INTERPOSE_LIBRARIES_H

#include "stack/elf_symbols.h"
#include <stdbool.h>
#include <stdint.h>

/* True for an address of the shim. */
bool gm_is_own(uintptr_t address);

bool gm_is_libcuda(const struct gm_object *object);
bool gm_is_cudart(const struct gm_object *object);

/* The loaded libcuda; false without one. */
bool gm_find_libcuda(struct gm_object *libcuda);

/* True if libcuda is loaded in this process. */
bool gm_libcuda_loaded(void);

/*
 * For the constructor: true if libcuda is loaded already and comes after us. Whoever is linked against it
 * reaches us first.
 */
bool gm_libcuda_linked(void);

/* A symbol of the loaded libcuda, or NULL. */
void *gm_libcuda_symbol(const char *name);

/* The definition of a libc function that callers would reach without us. NULL if there is none. */
void *gm_next_symbol(const char *name);

/* The same for those of several names whose place in `found` is NULL. */
void gm_next_symbols(const char *const *names, void **found, unsigned count);

#endif
