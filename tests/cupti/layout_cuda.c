/*
 * As NVIDIA's generated_cuda_meta.h has it: NAME_params, whose fields have the row's parameter
 * names.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <generated_cuda_meta.h>

#include "api/params.h"
#include "layout.h"
#include "layout_fields.h"

/* Of this one the first field has another name; the per-thread variant's has the row's. */
_Static_assert(sizeof(cuGraphLaunch_params) == sizeof(cuGraphLaunch_ptsz_params) &&
		       offsetof(cuGraphLaunch_params, hGraph) ==
			       offsetof(cuGraphLaunch_ptsz_params, hGraphExec) &&
		       offsetof(cuGraphLaunch_params, hStream) ==
			       offsetof(cuGraphLaunch_ptsz_params, hStream),
	       "cuGraphLaunch");
#define cuGraphLaunch_params cuGraphLaunch_ptsz_params

const struct layout layout_of_cuda[] = {
#define GM_RUNTIME(...)
#define GM_DRIVER(name, list, ...) LAYOUT(name, name##_params, list)
#include "api/cuda_api.def"
	{NULL},
};
