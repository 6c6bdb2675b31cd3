/*
 * The simulated driver with a teller in front of every function of the table. The functions proper
 * were renamed to inner_NAME in its objects (meson.build); calls between them are not told, as
 * libcuda's own are not. cuInit loads what CUDA_INJECTION64_PATH names, as libcuda's does.
 */
#include "recorder/calls/call.h"
#include "trace.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

#pragma GCC diagnostic ignored "-Woverride-init"

#define EXPORT	      __attribute__((visibility("default")))
#define MOST_CONTEXTS 16

static const struct traced *volatile traced; /* NULL: nobody listens */
static void *contexts[MOST_CONTEXTS];

EXPORT void gpusim_trace(const struct traced *to);
EXPORT void gpusim_trace(const struct traced *to)
{
	traced = to;
}

static void tell(const char *name, const void *params, const void *result, uint64_t *correlation)
{
	const struct traced *to = traced; /* another thread may end the listening meanwhile */

	if (to)
		to->call(name, params, result, correlation);
}

static void tell_context(int created, void *context)
{
	int i;

	if (!context)
		return;
	for (i = 0; i < MOST_CONTEXTS && contexts[i] != context; i++)
		;
	if (created == (i < MOST_CONTEXTS))
		return; /* known, or unknown, already */
	for (i = 0; i < MOST_CONTEXTS && contexts[i] != (created ? NULL : context); i++)
		;
	if (i == MOST_CONTEXTS)
		abort();
	contexts[i] = created ? context : NULL;
	if (traced)
		traced->context(created, context);
}

static void before(const struct gm_call *call, unsigned role)
{
	if (role == GM_ROLE_CTX_DESTROY)
		tell_context(0, (void *)(uintptr_t)call->key);
}

static void after(const struct gm_call *call, unsigned role, CUresult result)
{
	if (result == GM_CUDA_SUCCESS && (role == GM_ROLE_CTX_CREATE || role == GM_ROLE_CTX_RETAIN))
		tell_context(1, *(void **)call->out);
}

#define GM_RUNTIME(...)
#define GM_DRIVER(name, params, role_, kind_, ...)                                                 \
	EXPORT CUresult name(GM_PARAMS(params));                                                   \
	CUresult inner_##name(GM_PARAMS(params));                                                  \
	CUresult name(GM_PARAMS(params))                                                           \
	{                                                                                          \
		struct gm_call call = {.function = GM_FN_##name, .device = -1, ##__VA_ARGS__};     \
		struct {                                                                           \
			GM_FIELDS(params)                                                          \
		} given = {GM_NAMES(params)};                                                      \
		uint64_t correlation = 0;                                                          \
		CUresult result;                                                                   \
                                                                                                   \
		tell(#name, &given, NULL, &correlation);                                           \
		before(&call, GM_ROLE_##role_);                                                    \
		result = inner_##name(GM_NAMES(params));                                           \
		after(&call, GM_ROLE_##role_, result);                                             \
		tell(#name, &given, &result, &correlation);                                        \
		return result;                                                                     \
	}
#include "api/cuda_api.def"

CUresult inner_cuInit(unsigned int flags);
EXPORT CUresult cuInit(unsigned int flags);

CUresult cuInit(unsigned int flags)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	CUresult result = inner_cuInit(flags);
	static bool injected;
	int (*initialize)(void);
	void *library;

	if (result != GM_CUDA_SUCCESS || injected || !path)
		return result;
	injected = true;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	initialize = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
	if (!initialize || !initialize())
		abort();
	return result;
}

/* A way for a context to end that is in no table. */
EXPORT void gpusim_end_context(CUcontext context);
void gpusim_end_context(CUcontext context)
{
	tell_context(0, context);
	inner_cuCtxDestroy_v2(context);
}

/* The real driver, too, takes its contexts down at the end of the process. */
static void __attribute__((destructor)) take_down(void)
{
	int i;

	for (i = 0; i < MOST_CONTEXTS; i++)
		if (contexts[i])
			tell_context(0, contexts[i]);
}
