/*
 * The decoders of the driver's rows (decode.h). CUPTI passes a function's arguments as a structure
 * with the parameters in their order, so the row's own list gives its layout. tests/cupti compares
 * each with generated_cuda_meta.h.
 */
#include "cupti/decode.h"
#include "recorder/calls/call.h"

/* A row's field comes after the default and replaces it. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define GM_RUNTIME(...)
#define GM_DRIVER(name, list, role_, kind_, ...)                                                   \
	static void decode_##name(const void *given, struct gm_call *call)                         \
	{                                                                                          \
		const struct {                                                                     \
			GM_FIELDS(list)                                                            \
		} *params = given;                                                                 \
		GM_LOCALS(list)                                                                    \
                                                                                                   \
		(void)params;                                                                      \
		*call = (struct gm_call)GM_CALL(GM_FN_##name, {0}, ##__VA_ARGS__);                 \
	}
#include "api/cuda_api.def"

static void (*const decoders[GM_FUNCTIONS])(const void *, struct gm_call *) = {
#define GM_RUNTIME(...)
#define GM_DRIVER(name, ...) [GM_FN_##name] = decode_##name,
#include "api/cuda_api.def"
};

void gm_cupti_decode(unsigned function, const void *params, struct gm_call *call)
{
	decoders[function](params, call);
}
