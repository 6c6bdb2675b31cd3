/*
 * A preload whose clock_gettime advances by a tenth of a microsecond a call, so that what the shim
 * does once a millisecond comes at the same events in every run under valgrind.
 */
#include <stdint.h>
#include <time.h>

#define STEP_NS	  100u
#define SECOND_NS 1000000000u

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static uint64_t now_ns = SECOND_NS;
	uint64_t ns = __atomic_add_fetch(&now_ns, STEP_NS, __ATOMIC_RELAXED);

	(void)clock;
	time->tv_sec = (time_t)(ns / SECOND_NS);
	time->tv_nsec = (long)(ns % SECOND_NS);
	return 0;
}
