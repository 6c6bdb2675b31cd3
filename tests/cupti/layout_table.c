/*
 * As the decoders see it (src/cupti/decode.c): each row's parameters as fields, in cuda_abi.h's
 * types.
 */
#include "api/cuda_abi.h"
#include "api/params.h"
#include "layout.h"
#include "layout_fields.h"

#define GM_RUNTIME(...)
#define GM_DRIVER(name, list, ...)                                                                 \
	struct params_##name {                                                                     \
		GM_FIELDS(list)                                                                    \
	};
#include "api/cuda_api.def"

const struct layout layout_of_table[] = {
#define GM_RUNTIME(...)
#define GM_DRIVER(name, list, ...) LAYOUT(name, struct params_##name, list)
#include "api/cuda_api.def"
	{NULL},
};
