/*
 * Called by libcuda in cuInit, which opens the library that CUDA_INJECTION64_PATH names: where we
 * set that ourselves (recorder/injection.c), and in programs without LD_PRELOAD. Those that drop it, link
 * privately or open CUDA with RTLD_DEEPBIND are reached in this way; there are no wrappers then, so
 * events can come from CUPTI alone.
 */
#include "cupti/backend.h"
#include "interpose/resolve.h"
#include "recorder/libraries.h"
#include "recorder/settings.h"
#include "recorder/start.h"
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
	gm_driver_find(GM_FN_cuMemAlloc_v2); /* finds libcuda, opens the unwinder */
	gm_cupti_start();
	return 1;
}
