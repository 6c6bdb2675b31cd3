/*
 * Between the traced driver (traced_driver.c), a simulated driver that tells of its calls, and the
 * libcupti double (fake_cupti.c), which makes CUPTI's callbacks of them.
 */
#ifndef TESTS_CUPTI_TRACE_H
#define TESTS_CUPTI_TRACE_H

#include <stdint.h>

struct traced {
	/* `result` NULL: the call begins; *correlation is the call's own, 0 at first */
	void (*call)(const char *name, const void *params, const void *result,
		     uint64_t *correlation);
	void (*context)(int created, void *context);
};

/* Exported by the traced driver. The structure stays; NULL to hear no more. */
typedef void gpusim_trace_fn(const struct traced *traced);

#endif
