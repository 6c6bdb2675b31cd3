/*
 * The function that libcuda calls in cuInit of the library that CUDA_INJECTION64_PATH names. That
 * variable is set for the CUPTI backend (recorder/process/injection.c), and by users in whose
 * programs LD_PRELOAD has no effect: those that drop it, link privately or open CUDA with
 * RTLD_DEEPBIND. There are no wrappers then, and calls come from CUPTI alone.
 */
#include "cupti/backend.h"
#include "interpose/resolve_driver.h"
#include "recorder/state/libraries.h"
#include "recorder/state/settings.h"
#include "recorder/process/start.h"
#include "stack/elf_symbols.h"

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
	struct gm_object own;

	if (gm_disabled())
		return 1;
	if (gm_settings.backend == GM_BACKEND_PRELOAD) {
		if (gm_object_at((uintptr_t)InitializeInjection, &own) && gm_preloaded(&own))
			return 1; /* the wrappers see the calls */
		gm_settings.backend = GM_BACKEND_CUPTI;
	}
	gm_driver_find(GM_FN_cuMemAlloc_v2); /* finds libcuda, opens the unwinder */
	gm_cupti_start();
	return 1;
}
