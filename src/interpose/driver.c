/*
 * The wrappers of the driver's functions, one for each row of cuda_api.def, exported under the
 * driver's names: programs that link libcuda bind to them, everybody else is given their addresses by
 * dlsym and cuGetProcAddress.
 */
#include "interpose/pass.h"
#include "interpose/preload.h"
#include "interpose/resolve.h"

/* A row's field comes after the default and replaces it. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define EXPORT __attribute__((visibility("default")))

/* The prototypes are the table's own, held against CUDA's headers by api/abi_check.c. */
#define GM_RUNTIME(...)
#define GM_DRIVER(name, params, ...) EXPORT CUresult name(GM_PARAMS(params));
#define GM_ROUTE(layer, name, params) GM_ROUTE_##layer(name, params)
#define GM_ROUTE_RUNTIME(name, params)
#define GM_ROUTE_DRIVER(name, params) EXPORT CUresult name(GM_PARAMS(params));
#include "api/cuda_api.def"
#undef GM_ROUTE_RUNTIME
#undef GM_ROUTE_DRIVER

/* A call that is not only forwarded has a function of its own: forwarding needs no room for it. */
#define GM_RUNTIME(...)
#define GM_DRIVER(name, params, role_, kind_, ...)                                                \
	static __attribute__((noinline)) CUresult tell_##name(                                    \
		uintptr_t frame GM_MORE_PARAMS(params))                                           \
	{                                                                                         \
		CUresult (*real)(GM_PARAMS(params)) = gm_driver_find(GM_FN_##name);               \
		CUresult result;                                                                  \
                                                                                                  \
		GM_WATCH_UNWINDING();                                                             \
		if (!real)                                                                        \
			return GM_CUDART_NOT_INITIALIZED;                                         \
		struct gm_call call = GM_CALL(GM_FN_##name, GM_ENTRY_OF(frame), ##__VA_ARGS__);   \
		gm_call_begin(&call);                                                             \
		result = gm_call_refused(&call) ? GM_CUDA_OUT_OF_MEMORY : real(GM_NAMES(params)); \
		gm_call_end(&call, result);                                                       \
		return result;                                                                    \
	}                                                                                         \
                                                                                                  \
	EXPORT CUresult name(GM_PARAMS(params))                                                   \
	{                                                                                         \
		CUresult (*real)(GM_PARAMS(params)) = gm_driver_real[GM_FN_##name];               \
		CUresult result;                                                                  \
                                                                                                  \
		if (real && gm_passes(GM_ROLE_##role_, ((struct gm_call){__VA_ARGS__}).key))      \
			return real(GM_NAMES(params));                                            \
		result = tell_##name(GM_FRAME_HERE() GM_MORE_NAMES(params));                      \
		__asm__ volatile("" : "+r"(result)); /* the frame stays until then */             \
		return result;                                                                    \
	}
#include "api/cuda_api.def"

/* ---- routing: the real one is asked first, then its answer is mapped to our wrapper ---- */

EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	CUresult (*real)(const char *, void **, int, cuuint64_t) =
		gm_driver_find(GM_FN_cuGetProcAddress);
	CUresult result;

	if (!real)
		return GM_CUDART_NOT_INITIALIZED;
	result = real(symbol, pfn, cudaVersion, flags);
	if (result == GM_CUDA_SUCCESS && pfn && symbol && !gm_disabled())
		*pfn = gm_wrapper_of(*pfn, symbol, flags);
	return result;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
				    CUdriverProcAddressQueryResult *symbolStatus)
{
	CUresult (*real)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) =
		gm_driver_find(GM_FN_cuGetProcAddress_v2);
	CUresult result;

	if (!real)
		return GM_CUDART_NOT_INITIALIZED;
	result = real(symbol, pfn, cudaVersion, flags, symbolStatus);
	if (result == GM_CUDA_SUCCESS && pfn && symbol && !gm_disabled())
		*pfn = gm_wrapper_of(*pfn, symbol, flags);
	return result;
}

void *const gm_driver_wrapper[GM_FUNCTIONS] = {
#define GM_RUNTIME(...)
#define GM_DRIVER(name, ...)	       [GM_FN_##name] = (void *)name,
#define GM_ROUTE(layer, name, params)  GM_ROUTE_##layer(name)
#define GM_ROUTE_RUNTIME(name)
#define GM_ROUTE_DRIVER(name)	       [GM_FN_##name] = (void *)name,
#include "api/cuda_api.def"
};
