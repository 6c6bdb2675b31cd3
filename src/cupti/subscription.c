/*
 * Subscribing (subscription.h) and the callback itself, which passes on what CUPTI reports
 * (driver_calls.h). At the end of the process there is no unsubscribing and no cuptiFinalize: both
 * wait for threads inside CUDA, and the process releases everything anyway.
 */
#include "cupti/subscription.h"
#include "cupti/driver_calls.h"
#include "cupti/ids.h"

#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MOST_IDS   4096u /* callback ids; CUDA 13.0 has 807 */
#define NAME_BYTES 64	 /* CUPTI's limit for a subscriber's name */

/* CUpti_SubscriberParams, which the headers have from CUDA 12.8 or 13 on. */
struct subscriber_params {
	size_t struct_bytes;
	const char *name;
	char *holder; /* gets the name of a tool that is subscribed already */
	size_t holder_bytes;
};
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
_Static_assert(sizeof(struct subscriber_params) == CUpti_SubscriberParams_STRUCT_SIZE &&
		       offsetof(struct subscriber_params, holder) ==
			       offsetof(CUpti_SubscriberParams, oldSubscriberName),
	       "CUpti_SubscriberParams");
#endif

static struct {
	CUptiResult (*get_version)(uint32_t *);
	CUptiResult (*get_result_string)(CUptiResult, const char **);
	CUptiResult (*get_callback_name)(CUpti_CallbackDomain, uint32_t, const char **);
	CUptiResult (*subscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
	CUptiResult (*subscribe_v2)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *,
				    struct subscriber_params *);
	CUptiResult (*unsubscribe)(CUpti_SubscriberHandle);
	CUptiResult (*enable_callback)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
				       CUpti_CallbackId);
	CUpti_SubscriberHandle subscriber;
	uint16_t function[MOST_IDS]; /* the table's row + 1 by callback id, 0: not ours */
} cupti;

static bool find_functions(const struct gm_object *library, struct gm_cupti_answer *answer)
{
	const struct {
		const char *name;
		void *to;
		bool optional;
	} wanted[] = {
		{"cuptiGetVersion", &cupti.get_version, false},
		{"cuptiGetResultString", &cupti.get_result_string, false},
		{"cuptiGetCallbackName", &cupti.get_callback_name, false},
		{"cuptiSubscribe", &cupti.subscribe, false},
		{"cuptiSubscribe_v2", &cupti.subscribe_v2, true}, /* it names the subscriber */
		{"cuptiUnsubscribe", &cupti.unsubscribe, false},
		{"cuptiEnableCallback", &cupti.enable_callback, false},
	};
	size_t i;

	for (i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		void *found = gm_object_symbol(library, wanted[i].name, NULL);

		memcpy(wanted[i].to, &found, sizeof(found));
		if (!found && !wanted[i].optional) {
			answer->outcome = GM_CUPTI_INCOMPLETE;
			snprintf(answer->text, sizeof(answer->text), "%s", wanted[i].name);
			return false;
		}
	}
	return true;
}

/*
 * Versions are plain numbers until CUDA 12 (18 is CUDA 11.8), then the toolkit's version. struct
 * CUpti_CallbackData is the same in all of them, and the parameters of a function are those of its
 * symbol.
 */
static bool is_known_version(uint32_t version)
{
	return (version >= 18 && version < 100) || (version >= 130000 && version < 140000);
}

static bool fail(struct gm_cupti_answer *answer, CUptiResult error)
{
	const char *text = NULL;

	answer->outcome = error == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? GM_CUPTI_TAKEN
										  : GM_CUPTI_FAILED;
	if (answer->outcome == GM_CUPTI_TAKEN)
		return false; /* CUPTI has written the subscriber's name, if it knows it */
	if (cupti.get_result_string(error, &text) != CUPTI_SUCCESS || !text)
		text = "an unknown error";
	snprintf(answer->text, sizeof(answer->text), "%s (%d)", text, (int)error);
	return false;
}

/* ---- callbacks ---- */

static void on_resource(CUpti_CallbackId id, const CUpti_ResourceData *resource)
{
	if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED)
		gm_cupti_context_created();
	else if (id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING)
		gm_cupti_context_ends((uintptr_t)resource->context);
}

static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			  const void *data)
{
	const CUpti_CallbackData *call = data;
	unsigned function;

	(void)user;
	if (domain == CUPTI_CB_DOMAIN_RESOURCE)
		on_resource(id, data);
	if (domain != CUPTI_CB_DOMAIN_DRIVER_API || id >= MOST_IDS || !cupti.function[id])
		return;
	function = cupti.function[id] - 1u;
	if (call->callbackSite == CUPTI_API_ENTER)
		gm_cupti_call_begins(function, call->functionParams, call->correlationData);
	else
		gm_cupti_call_ends(*(const CUresult *)call->functionReturnValue,
				   call->correlationData);
}

/* ---- subscribing ---- */

static bool subscribe(struct gm_cupti_answer *answer)
{
	struct subscriber_params params = {
		.struct_bytes = sizeof(params),
		.name = "gpumemtrace",
		.holder = answer->text,
		.holder_bytes = NAME_BYTES,
	};
	CUptiResult error;

	_Static_assert(sizeof(answer->text) >= NAME_BYTES, "room for a subscriber's name");
	error = cupti.subscribe_v2
			? cupti.subscribe_v2(&cupti.subscriber, on_callback, NULL, &params)
			: CUPTI_ERROR_INVALID_PARAMETER;
	/*
	 * A libcupti that has another size for the parameters: the older function lacks names only.
	 */
	if (error == CUPTI_ERROR_INVALID_PARAMETER ||
	    error == CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT)
		error = cupti.subscribe(&cupti.subscriber, on_callback, NULL);
	answer->text[NAME_BYTES - 1] = '\0';
	return error == CUPTI_SUCCESS || fail(answer, error);
}

static bool is_named(uint32_t id, const char *name)
{
	const char *found = NULL;

	return cupti.get_callback_name(CUPTI_CB_DOMAIN_DRIVER_API, id, &found) == CUPTI_SUCCESS &&
	       found && !strcmp(found, name);
}

/* This libcupti's id of a function: the header's, if the name agrees, or found by name; 0: none. */
static uint32_t id_of(unsigned function, const char *name)
{
	uint32_t id = gm_cupti_ids[function];
	const char *found;

	if (id && is_named(id, name))
		return id;
	for (id = 1; id < MOST_IDS; id++) {
		if (cupti.get_callback_name(CUPTI_CB_DOMAIN_DRIVER_API, id, &found) !=
		    CUPTI_SUCCESS)
			return 0;
		if (found && !strcmp(found, name))
			return id;
	}
	return 0;
}

static bool enable_all(bool contexts, struct gm_cupti_answer *answer)
{
	static const CUpti_CallbackId resources[] = {CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
						     CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING};
	unsigned function, i;
	CUptiResult error;

	for (function = 0; function < gm_cupti_functions; function++) {
		const char *name = gm_cupti_wanted(function);
		uint32_t id = name ? id_of(function, name) : 0;

		answer->missing += name && !id;
		if (!id)
			continue;
		cupti.function[id] = (uint16_t)(function + 1);
		error = cupti.enable_callback(1, cupti.subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
		if (error != CUPTI_SUCCESS)
			return fail(answer, error);
		answer->enabled++;
	}
	for (i = 0; contexts && i < sizeof(resources) / sizeof(*resources); i++) {
		error = cupti.enable_callback(1, cupti.subscriber, CUPTI_CB_DOMAIN_RESOURCE,
					      resources[i]);
		if (error != CUPTI_SUCCESS)
			return fail(answer, error);
	}
	return true;
}

void gm_cupti_subscribe(const struct gm_object *library, bool contexts,
			struct gm_cupti_answer *answer)
{
	*answer = (struct gm_cupti_answer){.outcome = GM_CUPTI_SUBSCRIBED};
	if (!find_functions(library, answer))
		return;
	if (cupti.get_version(&answer->version) != CUPTI_SUCCESS ||
	    !is_known_version(answer->version)) {
		answer->outcome = GM_CUPTI_UNKNOWN_VERSION;
		return;
	}
	if (subscribe(answer) && !enable_all(contexts, answer))
		cupti.unsubscribe(cupti.subscriber);
}

void gm_cupti_unsubscribe(void)
{
	cupti.unsubscribe(cupti.subscriber);
}
