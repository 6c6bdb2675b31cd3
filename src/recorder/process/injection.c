/*
 * The variables that make this library an injection of NVTX and of libcuda (injection.h).
 */
#include "recorder/process/injection.h"
#include "recorder/state/log.h"
#include "recorder/state/settings.h"
#include "stack/elf_symbols.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NVTX_INJECTION "NVTX_INJECTION64_PATH"

static bool nvtx_taken; /* another tool's library was set */

static void inject_into_nvtx(const char *path)
{
	const char *set = getenv(NVTX_INJECTION);

	if (set && *set)
		nvtx_taken = strcmp(set, path) != 0;
	else
		setenv(NVTX_INJECTION, path, 1);
}

static void inject_into_cuda(const char *path)
{
	char absolute[PATH_MAX];

	if (!getenv(GM_CUDA_INJECTION) && realpath(path, absolute))
		setenv(GM_CUDA_INJECTION, absolute, 0);
}

void gm_injection_init(void)
{
	struct gm_object own;

	if (!gm_object_at((uintptr_t)gm_injection_init, &own) || !*own.path)
		return;
	if (gm_settings.mark_range || !gm_settings.no_ranges)
		inject_into_nvtx(own.path);
	if (GM_HAVE_CUPTI && gm_settings.backend == GM_BACKEND_CUPTI)
		inject_into_cuda(own.path);
}

void gm_injection_report(void)
{
	if (nvtx_taken && gm_settings.mark_range)
		gm_log(GM_LOG_WARN,
		       "GPUMEMTRACE_MARK has no effect: " NVTX_INJECTION " is set already, to "
		       "another tool's library; unset it, or mark by gpumemtrace_mark()");
}
