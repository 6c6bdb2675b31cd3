/*
 * The way in without LD_PRELOAD: libcuda itself opens the library that CUDA_INJECTION64_PATH names,
 * in cuInit, and calls this. It reaches programs that drop LD_PRELOAD, link privately or open CUDA
 * with RTLD_DEEPBIND; there are no wrappers then, so events can come from CUPTI alone.
 */
#include "interpose/preload.h"
#include "interpose/resolve.h"
#include "interpose/settings.h"
#include "stack/elf_symbols.h"

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
	struct gm_object own;

	if (gm_disabled())
		return 1;
	if (gm_settings.backend == GM_BACKEND_PRELOAD) {
		if (gm_object_at((uintptr_t)InitializeInjection, &own) && gm_preloaded(&own))
			return 1; /* the wrappers are at work already */
		gm_settings.backend = GM_BACKEND_CUPTI;
	}
	gm_driver_find(GM_FN_cuMemAlloc_v2); /* the look-up of libcuda is what starts the backend */
	return 1;
}
