/*
 * A preload whose clock_gettime advances by a tenth of a microsecond a call, so that what the shim
 * does once a millisecond comes at the same events in every run under valgrind. The shim calls the
 * C library's own function past every preload, so that one begins with a jump to this one.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define STEP_NS	  100u
#define SECOND_NS 1000000000u
#define PAGE	  4096u

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static uint64_t now_ns = SECOND_NS;
	uint64_t ns = __atomic_add_fetch(&now_ns, STEP_NS, __ATOMIC_RELAXED);

	(void)clock;
	time->tv_sec = (time_t)(ns / SECOND_NS);
	time->tv_nsec = (long)(ns % SECOND_NS);
	return 0;
}

__attribute__((constructor)) static void lead_here(void)
{
	/* movabs $clock_gettime, %rax; jmp *%rax */
	uint8_t jump[12] = {0x48, 0xb8, [10] = 0xff, 0xe0};
	uintptr_t here = (uintptr_t)clock_gettime;
	uint8_t *own = dlsym(dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY), "clock_gettime");
	uint8_t *page = own - (uintptr_t)own % PAGE;

	memcpy(jump + 2, &here, sizeof(here));
	if (!own || mprotect(page, (size_t)2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		fputs("steady_clock: the C library's clock_gettime cannot be changed\n", stderr);
		abort();
	}
	memcpy(own, jump, sizeof(jump));
	mprotect(page, (size_t)2 * PAGE, PROT_READ | PROT_EXEC);
}
