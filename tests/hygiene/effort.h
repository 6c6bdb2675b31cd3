/*
 * Under memcheck a program is 30 times slower. A test that tries thousands of inputs tries one in
 * test_thinned() of them there: what its code reads is the same for each. hygiene.py sets the
 * variable.
 */
#ifndef TEST_EFFORT_H
#define TEST_EFFORT_H

#include <stdlib.h>

static inline unsigned test_thinned(void)
{
	return getenv("TEST_UNDER_MEMCHECK") ? 50 : 1;
}

#endif
