/*
 * Another tool's injection, which subscribes to CUPTI and is not to lose that.
 */
#include <cupti_callbacks.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int InitializeInjection(void);

static void CUPTIAPI told(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			  const void *data)
{
	(void)user;
	(void)domain;
	(void)id;
	(void)data;
}

int InitializeInjection(void)
{
	static CUpti_SubscriberHandle subscriber;

	if (cuptiSubscribe(&subscriber, told, NULL) != CUPTI_SUCCESS)
		abort();
	return 1;
}
