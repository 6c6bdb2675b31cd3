/*
 * The wrappers of the driver's functions (driver.c), exported under the driver's names.
 */
#ifndef GM_INTERPOSE_DRIVER_H
#define GM_INTERPOSE_DRIVER_H

#include "api/api.h"

/* The prototypes are the table's own, held against CUDA's headers by api/abi_check.c. */
#define GM_RUNTIME(...)
#define GM_DRIVER(name, params, ...)                                                               \
	__attribute__((visibility("default"))) CUresult name(GM_PARAMS(params));
#include "api/cuda_api.def"

#endif
