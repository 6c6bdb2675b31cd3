/*
 * The subscription to CUPTI's callbacks. CUPTI's own types stay behind this header, because no file
 * can include both them and the table's (api/cuda_abi.h).
 */
#ifndef GM_CUPTI_SUBSCRIPTION_H
#define GM_CUPTI_SUBSCRIPTION_H

#include "stack/elf_symbols.h"
#include <stdbool.h>
#include <stdint.h>

enum gm_cupti_outcome {
	GM_CUPTI_SUBSCRIBED,
	GM_CUPTI_TAKEN, /* another tool is subscribed; `text`: its name, "" if CUPTI has none */
	GM_CUPTI_UNKNOWN_VERSION, /* older than CUDA 11.8 or newer than 13: structures may differ */
	GM_CUPTI_INCOMPLETE,	  /* it lacks a function that is needed; `text`: the function */
	GM_CUPTI_FAILED		  /* `text`: CUPTI's message */
};

struct gm_cupti_answer {
	enum gm_cupti_outcome outcome;
	uint32_t version; /* cuptiGetVersion's, 0: not known */
	unsigned enabled; /* functions whose callbacks are enabled */
	unsigned missing; /* functions of the table that this libcupti does not know */
	char text[128];
};

/*
 * Subscribes and enables the callbacks of the table's functions and, if `contexts`, those of
 * contexts. Undoes all of it on any outcome but GM_CUPTI_SUBSCRIBED.
 */
void gm_cupti_subscribe(const struct gm_object *library, bool contexts,
			struct gm_cupti_answer *answer);

/* Ends a subscription that succeeded: no callback begins any more. */
void gm_cupti_unsubscribe(void);

#endif
