/*
 * The wrappers of the driver's functions, one for each row of cuda_api.def, exported under the
 * driver's names. Programs that link libcuda bind to them; dlsym and cuGetProcAddress give their
 * addresses to all others (route.c).
 */
#include "interpose/driver.h"
#include "interpose/resolve_driver.h"
#include "interpose/wrap.h"
#include "recorder/calls/oom.h"
#include "recorder/calls/pass.h"
#include "recorder/calls/refuse.h"

/* A row's field comes after the default and replaces it. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define EXPORT __attribute__((visibility("default")))

/*
 * The code that records a call is a function of its own, so that forwarding takes no stack for it.
 */
#define GM_RUNTIME(...)
#define GM_DRIVER(name, params, role_, kind_, ...)                                                \
	static __attribute__((noinline)) CUresult record_##name(                                   \
		uintptr_t frame GM_MORE_PARAMS(params))                                           \
	{                                                                                         \
		CUresult (*real)(GM_PARAMS(params)) = gm_driver_find(GM_FN_##name);               \
		CUresult result;                                                                  \
                                                                                                  \
		GM_WATCH_UNWINDING();                                                             \
		if (!real)                                                                        \
			return GM_CUDART_NOT_INITIALIZED;                                         \
		struct gm_call call = GM_CALL(GM_FN_##name, GM_ENTRY_OF(frame), ##__VA_ARGS__);   \
		gm_call_prepare(&call, GM_ROLE_##role_, GM_KIND_##kind_);                         \
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
		if (real && gm_passes(GM_ROLE_##role_, ((struct gm_call){__VA_ARGS__}).key)) {    \
			if (GM_ROLE_##role_ != GM_ROLE_LAUNCH)                                    \
				return real(GM_NAMES(params));                                    \
			result = real(GM_NAMES(params));                                          \
			if (__builtin_expect(result == GM_CUDA_OUT_OF_MEMORY, 0))                 \
				gm_record_refused_launch(GM_FN_##name,                            \
							 GM_ENTRY_OF(GM_FRAME_HERE()));           \
			return result;                                                            \
		}                                                                                 \
		result = record_##name(GM_FRAME_HERE() GM_MORE_NAMES(params));                     \
		__asm__ volatile("" : "+r"(result)); /* no tail call, which would end the frame */ \
		return result;                                                                    \
	}
#include "api/cuda_api.def"
