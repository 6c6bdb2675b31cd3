/*
 * Holds abi_layout.def, and with a toolkit every prototype of cuda_api.def, against the headers
 * that this file is compiled with: cuda_abi.h, or NVIDIA's (-DGM_REAL_CUDA_HEADERS). A row whose
 * prototype differs from the header's does not compile. Makes no code.
 */
#ifdef GM_REAL_CUDA_HEADERS
#define __CUDA_API_VERSION_INTERNAL /* declares the old and the per-thread variants too */
#include <cuda.h>
#include <cuda_runtime_api.h>
#else
#include "api/cuda_abi.h"
#endif
#include "api/params.h"
#include <stddef.h>

#define GM_SIZE(type, bytes)		_Static_assert(sizeof(type) == (bytes), #type);
#define GM_OFFSET(type, member, bytes)                                                             \
	_Static_assert(offsetof(type, member) == (bytes), #type "." #member);
#include "api/abi_layout.def"

#ifdef GM_REAL_CUDA_HEADERS
#define GM_RUNTIME(name, params, ...)	   extern cudaError_t name(GM_PARAMS(params));
#define GM_RUNTIME_UNTIL12(name, params, ...)                                                      \
	GM_UNTIL12(extern cudaError_t name(GM_PARAMS(params));)
#define GM_RUNTIME_FROM13(name, params, ...) GM_FROM13(extern cudaError_t name(GM_PARAMS(params));)
#define GM_DRIVER(name, params, ...)	   extern CUresult name(GM_PARAMS(params));
#define GM_ROUTE(layer, name, params)	   GM_ROUTE_##layer(name, params)
#define GM_ROUTE_RUNTIME(name, params)	   extern cudaError_t name(GM_PARAMS(params));
#define GM_ROUTE_DRIVER(name, params)	   extern CUresult name(GM_PARAMS(params));
#if CUDART_VERSION >= 13000
#define GM_UNTIL12(...)
#define GM_FROM13(...) __VA_ARGS__
#else
#define GM_UNTIL12(...) __VA_ARGS__
#define GM_FROM13(...)
#endif
#include "api/cuda_api.def"
#endif
