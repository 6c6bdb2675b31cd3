/*
 * A preload that defines syscall(), as libuid_wrapper does, and clock_gettime(), as libfaketime
 * does. The first takes a lock there that is held while the library calls dlsym and dlclose; the
 * second uses memory that the library's destructor unmaps. So no call of the shim's may come by
 * here: one that would go wrong ends the program.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

long syscall(long number, ...);

static int ended;

long syscall(long number, ...)
{
	(void)number;
	abort();
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int (*real)(clockid_t, struct timespec *) =
		(int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");

	if (ended)
		abort();
	return real(clock, time);
}

static void __attribute__((destructor)) end(void)
{
	ended = 1;
}
