/*
 * A library whose destructor frees and allocates, and which asks in its constructor, before the
 * shim's own, to be called at exit: no handler of the process comes later.
 */
#define _DEFAULT_SOURCE
#include "late.h"

#include <stdlib.h>

static void last_of_all(int status, void *unused)
{
	(void)status, (void)unused;
	release(LAST_HANDLER);
	take(4096);
	print_books();
}

__attribute__((constructor)) static void construct(void)
{
	on_exit(last_of_all, NULL);
}

__attribute__((destructor)) static void destruct(void)
{
	release(LIBRARY);
	take(8192);
}
