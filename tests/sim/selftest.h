/*
 * What the simulator's tests share: a check that names its place and goes on, and free memory as a
 * device reports it.
 */
#ifndef SELFTEST_H
#define SELFTEST_H

#include <stdbool.h>
#include <stdio.h>
#include "sim_api.h"

#define MIB (1ull << 20)

static int checks, failures;

#define CHECK(actual, expected)                                                                    \
	do {                                                                                       \
		long long a_ = (long long)(actual), e_ = (long long)(expected);                    \
                                                                                                   \
		checks++;                                                                          \
		if (a_ != e_) {                                                                    \
			failures++;                                                                \
			printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual, a_,   \
			       e_);                                                                \
		}                                                                                  \
	} while (0)

static inline int done(void)
{
	printf("%d checks, %d failed\n", checks, failures);
	return failures != 0;
}

#endif
