/*
 * From the driver's functions to their wrappers, for cuGetProcAddress here and for others
 * (route.h). The real function is asked first, and then its answer is mapped to the wrapper, so
 * that versions and variants come out right.
 */
#include "interpose/route.h"
#include "interpose/driver.h"
#include "interpose/internal.h"
#include "interpose/resolve_driver.h"
#include "recorder/state/libraries.h"
#include "recorder/process/start.h"
#include "recorder/calls/unlisted.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define GM_RUNTIME(...)
#define GM_DRIVER(...)
#define GM_ROUTE(layer, name, params) GM_ROUTE_##layer(name, params)
#define GM_ROUTE_RUNTIME(name, params)
#define GM_ROUTE_DRIVER(name, params) EXPORT CUresult name(GM_PARAMS(params));
#include "api/cuda_api.def"
#undef GM_ROUTE_RUNTIME
#undef GM_ROUTE_DRIVER

static void *const wrappers[GM_FUNCTIONS] = {
#define GM_RUNTIME(...)
#define GM_DRIVER(name, ...)	      [GM_FN_##name] = (void *)name,
#define GM_ROUTE(layer, name, params) GM_ROUTE_##layer(name)
#define GM_ROUTE_RUNTIME(name)
#define GM_ROUTE_DRIVER(name)	      [GM_FN_##name] = (void *)name,
#include "api/cuda_api.def"
};

/*
 * The latest variant of a name, as cuGetProcAddress gives it: NAME_v2 before NAME, _ptsz by the
 * flag.
 */
static enum gm_function latest_variant(const char *symbol, uint64_t flags)
{
	static const char *const versions[] = {"_v4", "_v3", "_v2", ""};
	char name[128];
	unsigned i;

	for (i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		enum gm_function row;
		size_t bytes = strlen(symbol) + strlen(versions[i]);

		if (bytes + sizeof("_ptsz") > sizeof(name))
			return GM_FUNCTIONS;
		strcpy(stpcpy(name, symbol), versions[i]);
		if (flags & 2) { /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
			strcpy(name + bytes, "_ptsz");
			row = gm_row_named(name, 7);
			if (row < GM_FUNCTIONS && gm_rows[row].layer == GM_LAYER_DRIVER)
				return row;
			name[bytes] = '\0';
		}
		row = gm_row_named(name, 7);
		if (row < GM_FUNCTIONS && gm_rows[row].layer == GM_LAYER_DRIVER)
			return row;
	}
	return GM_FUNCTIONS;
}

/*
 * Puts the wrapper in front of a hook's function that was given out instead of the driver's; the
 * wrapper.
 */
static void *adopt(enum gm_function function, void *hook)
{
	return gm_driver_adopt(function, hook) ? wrappers[function] : hook;
}

void *gm_wrapper_of(void *real, const char *symbol, uint64_t flags)
{
	enum gm_function function;

	if (!real || gm_is_own((uintptr_t)real) || !gm_ready_driver())
		return real;
	function = gm_driver_row_of(real);
	if (function < GM_FUNCTIONS)
		return wrappers[function];
	function = gm_in_libcuda(real) ? GM_FUNCTIONS : latest_variant(symbol, flags);
	if (function < GM_FUNCTIONS)
		return adopt(function, real);
	gm_unlisted_function(symbol);
	return real;
}

void *gm_driver_wrapper_of(enum gm_function function, void *real)
{
	if (!gm_ready_driver())
		return real;
	if (real == gm_driver_real[function])
		return wrappers[function];
	return gm_in_libcuda(real) ? real : adopt(function, real);
}

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

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
				    cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
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
