/*
 * The wrappers of the runtime's functions. Each row of cuda_api.def has seven: one is exported
 * under each of the symbol versions of cudart 11, 12 and 13, where the real function is that of the
 * caller's own library; and GM_INSTANCES are given out by dlsym, each of which stands for one
 * loaded cudart.
 */
#include "interpose/runtime.h"
#include "interpose/internal.h"
#include "interpose/resolve_runtime.h"
#include "interpose/route.h"
#include "interpose/wrap.h"
#include "recorder/calls/sleep.h"

/* A row's field comes after the default and replaces it. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define CALLER ((uintptr_t)__builtin_return_address(0))
#define EXPORT __attribute__((visibility("default")))

/* A wrapper. `find` is the real function, or NULL where no CUDA runtime is behind the name. */
#define WRAPPER(linkage, symbol, row, find, role, kind, params, ...)                              \
	linkage cudaError_t symbol(GM_PARAMS(params));                                            \
	linkage cudaError_t symbol(GM_PARAMS(params))                                             \
	{                                                                                         \
		cudaError_t (*real)(GM_PARAMS(params)) = find;                                    \
		cudaError_t result;                                                               \
                                                                                                  \
		GM_WATCH_UNWINDING();                                                             \
		if (!real)                                                                        \
			return GM_CUDART_INSUFFICIENT_DRIVER;                                     \
		if (gm_off())                                                                     \
			return real(GM_NAMES(params));                                            \
		/* it is large, so it is filled only here */                                      \
		struct gm_call call = GM_CALL(row, GM_ENTRY_HERE(), ##__VA_ARGS__);               \
		gm_call_prepare(&call, role, kind);                                               \
		gm_call_begin(&call);                                                             \
		result = real(GM_NAMES(params));                                                  \
		gm_call_end(&call, result);                                                       \
		return result;                                                                    \
	}

#define VERSION(symbol, name, version) __asm__(".symver " #symbol ", " name version ", remove");

#define VERSIONED(major, at, name, row, ...)                                                      \
	VERSION(gm_v##major##_##row, #name, at)                                                   \
	WRAPPER(EXPORT, gm_v##major##_##row, GM_FN_##row,                                         \
		gm_runtime_find(GM_FN_##row, major, CALLER), __VA_ARGS__)

#define INSTANCE(number, row, ...)                                                                \
	WRAPPER(static, instance_##number##_##row, GM_FN_##row,                                   \
		gm_runtime_instance_real(number, GM_FN_##row), __VA_ARGS__)

#define INSTANCES(row, ...)                                                                       \
	INSTANCE(0, row, __VA_ARGS__)                                                             \
	INSTANCE(1, row, __VA_ARGS__)                                                             \
	INSTANCE(2, row, __VA_ARGS__)                                                             \
	INSTANCE(3, row, __VA_ARGS__)

#define OLD(name, row, ...)                                                                       \
	VERSIONED(11, "@libcudart.so.11.0", name, row, __VA_ARGS__)                               \
	VERSIONED(12, "@libcudart.so.12", name, row, __VA_ARGS__)
#define NEW(name, row, ...)                                                                       \
	VERSIONED(13, "@@libcudart.so.13", name, row, __VA_ARGS__)

#define GM_DRIVER(...)
#define GM_RUNTIME(name, params, role_, kind_, ...)                                               \
	OLD(name, name, GM_ROLE_##role_, GM_KIND_##kind_, params, ##__VA_ARGS__)                  \
	NEW(name, name, GM_ROLE_##role_, GM_KIND_##kind_, params, ##__VA_ARGS__)                  \
	INSTANCES(name, GM_ROLE_##role_, GM_KIND_##kind_, params, ##__VA_ARGS__)
#define GM_RUNTIME_UNTIL12(name, params, role_, kind_, ...)                                       \
	OLD(name, name##_until12, GM_ROLE_##role_, GM_KIND_##kind_, params, ##__VA_ARGS__)        \
	INSTANCES(name##_until12, GM_ROLE_##role_, GM_KIND_##kind_, params, ##__VA_ARGS__)
#define GM_RUNTIME_FROM13(name, params, role_, kind_, ...)                                        \
	NEW(name, name, GM_ROLE_##role_, GM_KIND_##kind_, params, ##__VA_ARGS__)                  \
	INSTANCES(name, GM_ROLE_##role_, GM_KIND_##kind_, params, ##__VA_ARGS__)
#include "api/cuda_api.def"

/* ---- routing: cudart is asked first, then its answer is mapped to the wrapper ---- */

#define ROUTE_BY_SYMBOL(linkage, symbol_, row, find)                                              \
	linkage cudaError_t symbol_(const char *symbol, void **funcPtr, unsigned long long flags, \
				    enum cudaDriverEntryPointQueryResult *driverStatus);          \
	linkage cudaError_t symbol_(const char *symbol, void **funcPtr, unsigned long long flags, \
				    enum cudaDriverEntryPointQueryResult *driverStatus)           \
	{                                                                                         \
		cudaError_t (*real)(const char *, void **, unsigned long long,                    \
				    enum cudaDriverEntryPointQueryResult *) = find;               \
                                                                                                  \
		if (!real)                                                                        \
			return GM_CUDART_INSUFFICIENT_DRIVER;                                     \
		return mapped(real(symbol, funcPtr, flags, driverStatus), symbol, funcPtr, flags, \
			      row);                                                               \
	}

#define ROUTE_BY_VERSION(linkage, symbol_, row, find)                                             \
	linkage cudaError_t symbol_(const char *symbol, void **funcPtr, unsigned int version,     \
				    unsigned long long flags,                                     \
				    enum cudaDriverEntryPointQueryResult *driverStatus);          \
	linkage cudaError_t symbol_(const char *symbol, void **funcPtr, unsigned int version,     \
				    unsigned long long flags,                                     \
				    enum cudaDriverEntryPointQueryResult *driverStatus)           \
	{                                                                                         \
		cudaError_t (*real)(const char *, void **, unsigned int, unsigned long long,      \
				    enum cudaDriverEntryPointQueryResult *) = find;               \
                                                                                                  \
		if (!real)                                                                        \
			return GM_CUDART_INSUFFICIENT_DRIVER;                                     \
		return mapped(real(symbol, funcPtr, version, flags, driverStatus), symbol,        \
			      funcPtr, flags, row);                                               \
	}

static cudaError_t mapped(cudaError_t result, const char *symbol, void **pointer,
			  unsigned long long flags, enum gm_function row)
{
	bool per_thread = row == GM_FN_cudaGetDriverEntryPoint_ptsz ||
			  row == GM_FN_cudaGetDriverEntryPointByVersion_ptsz;

	if (result == GM_CUDA_SUCCESS && symbol && pointer && !gm_disabled())
		*pointer = gm_wrapper_of(*pointer, symbol, per_thread ? flags | 2 : flags);
	return result;
}

#define ROUTES(kind, name)                                                                        \
	VERSION(gm_v11_##name, #name, "@libcudart.so.11.0")                                       \
	VERSION(gm_v12_##name, #name, "@libcudart.so.12")                                         \
	VERSION(gm_v13_##name, #name, "@@libcudart.so.13")                                        \
	kind(EXPORT, gm_v11_##name, GM_FN_##name, gm_runtime_find(GM_FN_##name, 11, CALLER))      \
	kind(EXPORT, gm_v12_##name, GM_FN_##name, gm_runtime_find(GM_FN_##name, 12, CALLER))      \
	kind(EXPORT, gm_v13_##name, GM_FN_##name, gm_runtime_find(GM_FN_##name, 13, CALLER))      \
	kind(static, instance_0_##name, GM_FN_##name, gm_runtime_instance_real(0, GM_FN_##name))  \
	kind(static, instance_1_##name, GM_FN_##name, gm_runtime_instance_real(1, GM_FN_##name))  \
	kind(static, instance_2_##name, GM_FN_##name, gm_runtime_instance_real(2, GM_FN_##name))  \
	kind(static, instance_3_##name, GM_FN_##name, gm_runtime_instance_real(3, GM_FN_##name))

ROUTES(ROUTE_BY_SYMBOL, cudaGetDriverEntryPoint)
ROUTES(ROUTE_BY_SYMBOL, cudaGetDriverEntryPoint_ptsz)
ROUTES(ROUTE_BY_VERSION, cudaGetDriverEntryPointByVersion)
ROUTES(ROUTE_BY_VERSION, cudaGetDriverEntryPointByVersion_ptsz)

/* ---- what dlsym gives out ---- */

#define ROW(number, row)		 [GM_FN_##row] = (void *)instance_##number##_##row,
#define GM_ROUTE_DRIVER(number, name)
#define GM_ROUTE_RUNTIME(number, name)	 ROW(number, name)

static void *const wrappers[GM_INSTANCES][GM_FUNCTIONS] = {
	{
#define GM_DRIVER(...)
#define GM_RUNTIME(name, ...)		 ROW(0, name)
#define GM_RUNTIME_UNTIL12(name, ...)	 ROW(0, name##_until12)
#define GM_RUNTIME_FROM13(name, ...)	 ROW(0, name)
#define GM_ROUTE(layer, name, params)	 GM_ROUTE_##layer(0, name)
#include "api/cuda_api.def"
	},
	{
#define GM_DRIVER(...)
#define GM_RUNTIME(name, ...)		 ROW(1, name)
#define GM_RUNTIME_UNTIL12(name, ...)	 ROW(1, name##_until12)
#define GM_RUNTIME_FROM13(name, ...)	 ROW(1, name)
#define GM_ROUTE(layer, name, params)	 GM_ROUTE_##layer(1, name)
#include "api/cuda_api.def"
	},
	{
#define GM_DRIVER(...)
#define GM_RUNTIME(name, ...)		 ROW(2, name)
#define GM_RUNTIME_UNTIL12(name, ...)	 ROW(2, name##_until12)
#define GM_RUNTIME_FROM13(name, ...)	 ROW(2, name)
#define GM_ROUTE(layer, name, params)	 GM_ROUTE_##layer(2, name)
#include "api/cuda_api.def"
	},
	{
#define GM_DRIVER(...)
#define GM_RUNTIME(name, ...)		 ROW(3, name)
#define GM_RUNTIME_UNTIL12(name, ...)	 ROW(3, name##_until12)
#define GM_RUNTIME_FROM13(name, ...)	 ROW(3, name)
#define GM_ROUTE(layer, name, params)	 GM_ROUTE_##layer(3, name)
#include "api/cuda_api.def"
	},
};

void *gm_runtime_wrapper_of(enum gm_function function, void *real, const struct gm_object *cudart)
{
	unsigned instance = gm_runtime_instance(function, real, cudart);

	return instance < GM_INSTANCES && wrappers[instance][function]
		       ? wrappers[instance][function]
		       : real;
}
