/*
 * Finding libcupti at run time: the copy that is loaded already, else the one of the toolkit that
 * CUDA_HOME or CUDA_PATH names, a Python wheel's, the loader's, or the installed toolkit's.
 */
#ifndef GM_CUPTI_LIBRARY_H
#define GM_CUPTI_LIBRARY_H

#include "stack/elf_symbols.h"
#include <stdbool.h>

/* True for NAME.so…, NAME-HASH.so… and NAME.HASH.so…, as wheels rename libraries. */
bool gm_cupti_is_library(const struct gm_object *object, const char *name);

/*
 * Opens a libcupti that fits a driver of `major` (13 for CUDA 13). An older libcupti works with a
 * newer driver, but not the other way round. Loads libraries. False if there is none.
 */
bool gm_cupti_find(unsigned major, struct gm_object *library);

#endif
