/*
 * Families of memory behaviour, as generators of random traces at site 0. Each keeps its live bytes
 * stationary; a leak may be laid over any of them.
 */
#ifndef TESTS_GROWTH_FAMILIES_H
#define TESTS_GROWTH_FAMILIES_H

#include "trace.h"

/* A family steps once: some allocations, some frees. Returns the allocations and their bytes. */
struct churn {
	unsigned allocations;
	uint64_t bytes;
};

struct family {
	const char *name;
	void (*start)(unsigned window_allocations); /* draws its parameters */
	struct churn (*step)(void);
};

extern const struct family families[];
extern const unsigned families_count;

/*
 * How far back memory reaches, in windows: no family remembers longer than this (0.5). The study
 * also measures beyond it.
 */
void families_memory(double windows);

#endif
