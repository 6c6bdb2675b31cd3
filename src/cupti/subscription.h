/*
 * The subscription to CUPTI's callbacks. CUPTI's own types stay behind this header: they and the
 * table's (api/cuda_abi.h) cannot be seen by one file.
 */
#ifndef GM_CUPTI_SUBSCRIPTION_H
#define GM_CUPTI_SUBSCRIPTION_H

#include "stack/elf_symbols.h"
#include <stdint.h>

enum gm_cupti_outcome {
	GM_CUPTI_SUBSCRIBED,
	GM_CUPTI_TAKEN, /* another tool is the one subscriber; `text`: who, "" if CUPTI does not
			   tell */
	GM_CUPTI_UNKNOWN_VERSION, /* older than CUDA 11.8 or newer than 13: structures may differ */
	GM_CUPTI_INCOMPLETE,	  /* it lacks a function that is needed; `text`: which */
	GM_CUPTI_FAILED		  /* `text`: what CUPTI says */
};

struct gm_cupti_answer {
	enum gm_cupti_outcome outcome;
	uint32_t version; /* cuptiGetVersion's, 0 if it could not be asked */
	unsigned enabled; /* functions that are told */
	unsigned missing; /* functions of the table that this libcupti does not know */
	char text[128];
};

/* Subscribes and enables the callbacks. On any outcome but the first nothing is left behind. */
void gm_cupti_subscribe(const struct gm_object *library, struct gm_cupti_answer *answer);

#endif
