/*
 * A preload that defines syscall(), as libuid_wrapper does. That takes a lock there which the
 * wrapper holds while it calls dlsym and dlclose, so no call of the shim's may come by here: one
 * ends the program.
 */
#include <stdlib.h>

long syscall(long number, ...);

long syscall(long number, ...)
{
	(void)number;
	abort();
}
