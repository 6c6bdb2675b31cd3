/*
 * A libcupti double in front of the traced driver: ids and names are those of NVIDIA's header, the
 * structures NVIDIA's own. The environment makes it another version, busy, broken, or differently
 * numbered:
 *
 *   FAKE_CUPTI_VERSION   what cuptiGetVersion says
 *   FAKE_CUPTI_HOLDER    somebody is subscribed already, by this name
 *   FAKE_CUPTI_ERROR     what cuptiSubscribe answers
 *   FAKE_CUPTI_SHIFT     ids are this much higher than the header's
 *   FAKE_CUPTI_LACKS     a function this version does not know
 *   FAKE_CUPTI_SIZE      the bytes that cuptiSubscribe_v2 wants its parameters to have
 *   FAKE_CUPTI_LOST_END  number of the cuMemAlloc_v2 call whose end is never told (a longjmp)
 *
 * What may wait for threads inside CUDA, cuptiFinalize and cuptiActivityFlushAll, ends the process
 * here.
 *
 * -DFAKE_OLD: without cuptiSubscribe_v2; -DFAKE_INCOMPLETE: without cuptiEnableCallback.
 */
#include "trace.h"

#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_result.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define IDS    1024

static const char *const names[IDS] = {
#define FAKE_ID(name) [CUPTI_DRIVER_TRACE_CBID_##name] = #name,
#include "fake_ids.h"
};

static struct {
	CUpti_CallbackFunc callback;
	void *user;
	bool enabled[CUPTI_CB_DOMAIN_SIZE][IDS];
	unsigned allocations, lost_end;
} fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of id_of's memory */

static unsigned number(const char *setting, unsigned otherwise)
{
	const char *value = getenv(setting);

	return value ? (unsigned)atoi(value) : otherwise;
}

static const char *name_of(uint32_t id)
{
	const char *lacks = getenv("FAKE_CUPTI_LACKS");
	unsigned shift = number("FAKE_CUPTI_SHIFT", 0);

	if (id < shift || id - shift >= IDS || (id > shift && !names[id - shift]))
		return NULL;
	return id == shift || (lacks && !strcmp(lacks, names[id - shift])) ? "INVALID"
									   : names[id - shift];
}

EXPORT CUptiResult cuptiGetVersion(uint32_t *version)
{
#ifdef FAKE_OLD
	*version = number("FAKE_CUPTI_VERSION", 18);
#else
	*version = number("FAKE_CUPTI_VERSION", 130001);
#endif
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
	static char words[64];

	snprintf(words, sizeof(words), "CUPTI_ERROR_NUMBER_%d", (int)result);
	*text = words;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name)
{
	unsigned shift = number("FAKE_CUPTI_SHIFT", 0);

	if (domain != CUPTI_CB_DOMAIN_DRIVER_API)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*name = id && id < shift ? "INVALID" : name_of(id);
	return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

/* ---- what the traced driver tells ---- */

static void tell(CUpti_CallbackDomain domain, uint32_t id, const void *data)
{
	CUpti_CallbackFunc callback = __atomic_load_n(&fake.callback, __ATOMIC_ACQUIRE);

	if (callback && fake.enabled[domain][id])
		callback(fake.user, domain, id, data);
}

/* Each name is one literal of the driver's, so its address will do. */
static uint32_t id_of(const char *name)
{
	static struct {
		const char *name;
		uint32_t id;
	} known[IDS];
	uint32_t slot = (uint32_t)((uintptr_t)name * 0x9e3779b97f4a7c15ull >> 54), id;

	if (__atomic_load_n(&known[slot].name, __ATOMIC_ACQUIRE) == name)
		return known[slot].id;
	for (id = 0; id < IDS; id++)
		if (name_of(id) && !strcmp(name_of(id), name))
			break;
	pthread_mutex_lock(&lock);
	if (!known[slot].name) {
		known[slot].id = id;
		__atomic_store_n(&known[slot].name, name, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return id;
}

static void told_call(const char *name, const void *params, const void *result,
		      uint64_t *correlation)
{
	CUpti_CallbackData data = {
		.callbackSite = result ? CUPTI_API_EXIT : CUPTI_API_ENTER,
		.functionName = name,
		.functionParams = params,
		.functionReturnValue = (void *)(uintptr_t)result,
		.correlationData = correlation,
	};
	uint32_t id = id_of(name);

	if (id == IDS)
		return;
	if (fake.lost_end && !strcmp(name, "cuMemAlloc_v2")) {
		fake.allocations += !result;
		if (result && fake.allocations == fake.lost_end)
			return;
	}
	tell(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

static void told_context(int created, void *context)
{
	CUpti_ResourceData data = {.context = context};

	tell(CUPTI_CB_DOMAIN_RESOURCE,
	     created ? CUPTI_CBID_RESOURCE_CONTEXT_CREATED
		     : CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
	     &data);
}

static CUptiResult listen(bool on)
{
	static const struct traced told = {told_call, told_context};
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	gpusim_trace_fn *trace = driver ? (gpusim_trace_fn *)dlsym(driver, "gpusim_trace") : NULL;

	if (!trace)
		return CUPTI_ERROR_NOT_INITIALIZED;
	trace(on ? &told : NULL);
	return CUPTI_SUCCESS;
}

/* ---- subscribing ---- */

EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
				  void *user)
{
	if (fake.callback || getenv("FAKE_CUPTI_HOLDER"))
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	if (getenv("FAKE_CUPTI_ERROR"))
		return (CUptiResult)number("FAKE_CUPTI_ERROR", 0);
	fake.callback = callback;
	fake.user = user;
	fake.lost_end = number("FAKE_CUPTI_LOST_END", 0);
	*subscriber = (CUpti_SubscriberHandle)&fake;
	return listen(true);
}

#ifndef FAKE_OLD
EXPORT CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber,
				     CUpti_CallbackFunc callback, void *user,
				     CUpti_SubscriberParams *params)
{
	CUptiResult result;

	if (params->structSize != number("FAKE_CUPTI_SIZE", CUpti_SubscriberParams_STRUCT_SIZE))
		return CUPTI_ERROR_INVALID_PARAMETER;
	result = cuptiSubscribe(subscriber, callback, user);
	if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && params->oldSubscriberName)
		snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s",
			 getenv("FAKE_CUPTI_HOLDER") ? getenv("FAKE_CUPTI_HOLDER")
						     : "CUPTI for another tool");
	return result;
}
#endif

/* The shim looks functions up, so a name is all that these have in common with CUPTI's. */
EXPORT CUptiResult cuptiFinalize(void)
{
	abort();
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	(void)flag;
	abort();
}

EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
	if (subscriber != (CUpti_SubscriberHandle)&fake)
		return CUPTI_ERROR_INVALID_PARAMETER;
	fake.callback = NULL;
	return listen(false);
}

EXPORT CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
				     CUpti_CallbackDomain domain)
{
	if (subscriber != (CUpti_SubscriberHandle)&fake || domain >= CUPTI_CB_DOMAIN_SIZE)
		return CUPTI_ERROR_INVALID_PARAMETER;
	memset(fake.enabled[domain], enable != 0, sizeof(fake.enabled[domain]));
	return CUPTI_SUCCESS;
}

#ifndef FAKE_INCOMPLETE
EXPORT CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
				       CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
	if (subscriber != (CUpti_SubscriberHandle)&fake || domain >= CUPTI_CB_DOMAIN_SIZE ||
	    id >= IDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	fake.enabled[domain][id] = enable;
	return CUPTI_SUCCESS;
}
#endif
