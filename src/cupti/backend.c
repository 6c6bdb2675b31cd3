/*
 * Choosing CUPTI as the source of calls, and reporting the outcome (backend.h).
 */
#include "cupti/backend.h"
#include "cupti/driver_calls.h"
#include "cupti/library.h"
#include "cupti/subscription.h"
#include "api/api.h"
#include "recorder/process/describe.h"
#include "recorder/process/injection.h"
#include "recorder/state/libraries.h"
#include "recorder/state/log.h"
#include "recorder/state/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TRIES 3 /* to leave CUPTI while a call is under way */

static bool subscribed; /* CUPTI is the source (atomic) */

/*
 * Says which source of calls is used if CUPTI cannot be: if only CUDA_INJECTION64_PATH loaded the
 * library, there are no wrappers.
 */
static const char *instead(void)
{
	struct gm_object own;

	if (gm_object_at((uintptr_t)instead, &own) && gm_preloaded(&own))
		return "recording by LD_PRELOAD";
	return "nothing is recorded; set LD_PRELOAD to libgpumemtrace.so";
}

static unsigned driver_major(void)
{
	CUresult (*get_version)(int *) = gm_libcuda_symbol("cuDriverGetVersion");
	int version = 0;

	return get_version && get_version(&version) == GM_CUDA_SUCCESS ? (unsigned)version / 1000
								       : 13;
}

/* Names the subscriber: as CUPTI does, else by the injection that is set, else by a guess. */
static void name_holder(const struct gm_cupti_answer *answer, char *text, size_t bytes)
{
	const char *injection = getenv(GM_CUDA_INJECTION);

	if (answer->text[0])
		snprintf(text, bytes, "%s", answer->text);
	else if (injection && *injection && !strstr(injection, "gpumemtrace"))
		snprintf(text, bytes, "another tool (%s?)", injection);
	else
		snprintf(text, bytes, "another tool (torch.profiler, Nsight, cuda-gdb?)");
}

/* Writes the reason why CUPTI is not used. */
static void describe_refusal(const struct gm_cupti_answer *answer, const char *path, char *why,
			     size_t bytes)
{
	char holder[256];

	switch (answer->outcome) {
	case GM_CUPTI_TAKEN:
		name_holder(answer, holder, sizeof(holder));
		snprintf(why, bytes, "it has room for one subscriber, and %s is it", holder);
		break;
	case GM_CUPTI_UNKNOWN_VERSION:
		snprintf(why, bytes,
			 "%s has API version %u, known are 18 (CUDA 11.8) to those of CUDA 13",
			 path, answer->version);
		break;
	case GM_CUPTI_INCOMPLETE:
		snprintf(why, bytes, "%s lacks %s", path, answer->text);
		break;
	default:
		snprintf(why, bytes, "%s says %s", path, answer->text);
		break;
	}
}

static int is_torch(const struct gm_object *object, void *unused)
{
	(void)unused;
	return gm_cupti_is_library(object, "libtorch_cpu") ||
	       gm_cupti_is_library(object, "libkineto");
}

static void report_subscription(const struct gm_cupti_answer *answer, const char *path)
{
	gm_log(GM_LOG_INFO,
	       "recording by CUPTI (%s, API version %u): %u functions, %u of ours it does "
	       "not know",
	       path, answer->version, answer->enabled, answer->missing);
	gm_log(gm_objects_each(is_torch, NULL) ? GM_LOG_WARN : GM_LOG_INFO,
	       "CUPTI has room for one subscriber, and gpumemtrace is it now: torch.profiler and "
	       "other "
	       "CUPTI tools get no GPU activities in this process");
}

/* A callback cannot replace the result of a call. */
static void drop_refusals(void)
{
	if (!gm_settings.refuses)
		return;
	gm_log(GM_LOG_WARN,
	       "GPUMEMTRACE_CAPACITY and GPUMEMTRACE_FAIL need GPUMEMTRACE_BACKEND=preload: "
	       "ignored");
	gm_settings.capacity_bytes = UINT64_MAX;
	gm_settings.fail_from = gm_settings.fail_to = 0;
	gm_settings.refuses = false;
	gm_settings.fail_share = 0;
}

/* Becomes CUPTI's subscriber; false after a sentence without its end in `why`. */
static bool subscribe(struct gm_object *library, struct gm_cupti_answer *answer, bool contexts,
		      char *why, size_t bytes)
{
	if (!gm_cupti_calls_start() || !gm_cupti_find(driver_major(), library)) {
		snprintf(why, bytes,
			 "there is no libcupti (it comes with the CUDA toolkit and with pip's "
			 "nvidia-cuda-cupti; LD_LIBRARY_PATH or CUDA_HOME may lead to it)");
		return false;
	}
	gm_cupti_subscribe(library, contexts, answer);
	if (answer->outcome == GM_CUPTI_SUBSCRIBED)
		return true;
	describe_refusal(answer, library->path, why, bytes);
	return false;
}

static bool become_source(void)
{
	struct gm_cupti_answer answer;
	struct gm_object library;
	char why[PATH_MAX + 256];

	if (!subscribe(&library, &answer, true, why, sizeof(why))) {
		gm_log(GM_LOG_WARN, "CUPTI is not used: %s; %s", why, instead());
		return false;
	}
	report_subscription(&answer, library.path);
	return true;
}

void gm_cupti_start(void)
{
	static int started;

	/*
	 * This is done once: when libcuda is unloaded and loaded again, the subscription is still
	 * there.
	 */
	if (gm_settings.backend != GM_BACKEND_CUPTI ||
	    __atomic_exchange_n(&started, 1, __ATOMIC_RELAXED))
		return;
	if (become_source()) {
		drop_refusals();
		__atomic_store_n(&subscribed, true, __ATOMIC_RELEASE);
		return;
	}
	gm_settings.backend = GM_BACKEND_PRELOAD;
	gm_describe_backend();
}

static bool cuda_started(void)
{
	CUresult (*count_devices)(int *) = gm_libcuda_symbol("cuDeviceGetCount");
	int count;

	return count_devices && count_devices(&count) != GM_CUDART_NOT_INITIALIZED;
}

bool gm_cupti_reports(unsigned layer)
{
	/* In a runtime call CUDA may not be initialised yet: cuInit is called inside it. */
	if (!__atomic_load_n(&subscribed, __ATOMIC_ACQUIRE) && layer == GM_LAYER_DRIVER &&
	    cuda_started())
		gm_cupti_start();
	return gm_settings.backend == GM_BACKEND_CUPTI;
}

/* ---- beside the wrappers, in a process that was attached to ---- */

static uint32_t joined; /* functions whose calls CUPTI reports, 0: CUPTI is not joined */

unsigned gm_cupti_join(char *why, size_t bytes)
{
	struct gm_cupti_answer answer;
	struct gm_object library;

	if (joined)
		return joined;
	if (__atomic_load_n(&subscribed, __ATOMIC_ACQUIRE)) {
		snprintf(why, bytes, "the shim is its subscriber already");
		return 0;
	}
	if (!cuda_started()) {
		snprintf(why, bytes, "the process has not initialised CUDA");
		return 0;
	}
	gm_cupti_listen(false);
	if (subscribe(&library, &answer, false, why, bytes))
		joined = answer.enabled;
	return joined;
}

bool gm_cupti_leave(void)
{
	static unsigned tried;

	if (!joined)
		return true;
	/* A call whose thread was cancelled inside CUDA never ends. */
	if (!gm_cupti_calls_drain() && ++tried < MOST_TRIES)
		return false;
	gm_cupti_listen(false);
	gm_cupti_unsubscribe();
	joined = 0;
	tried = 0;
	return true;
}
