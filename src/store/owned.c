/*
 * The barrier that lets an owner do without, and waiting where there is nothing to wait on (owned.h).
 */
#include "store/owned.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef SYS_membarrier
#include <linux/membarrier.h>
#endif

enum { UNKNOWN, PRESENT, ABSENT };

static int barrier; /* whether the kernel has it (atomic) */

#ifdef SYS_membarrier

static bool ask(void)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return commands > 0 && commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED;
}

/* A barrier in every thread of the process. The first is to be announced, which can take milliseconds. */
static bool put_barriers(void)
{
	return !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) ||
	       (!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) &&
		!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
}

#else

static bool ask(void)
{
	return false;
}

static bool put_barriers(void)
{
	return false;
}

#endif

static bool has_barrier(void)
{
	int known = __atomic_load_n(&barrier, __ATOMIC_RELAXED);

	if (known == UNKNOWN) {
		known = ask() ? PRESENT : ABSENT;
		__atomic_store_n(&barrier, known, __ATOMIC_RELAXED);
	}
	return known == PRESENT;
}

/*
 * On a futex that nobody wakes: libc's sleeps would end a thread that was cancelled, and any other system call
 * would be one more for a sandbox to kill a program for.
 */
static void sleep_for(long ns)
{
	const uint32_t word = 0;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ns;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL, FUTEX_BITSET_MATCH_ANY) < 0 &&
	       errno == EINTR)
		;
}

void gm_owned_pause(void)
{
	int saved = errno;

	sleep_for(GM_OWNED_PAUSE_NS);
	errno = saved;
}

/* Takes it away from its owner. */
static void share(struct gm_owned *owned)
{
	if (!put_barriers())
		sleep_for(GM_OWNED_WAIT_NS);
	__atomic_store_n(&owned->owner, GM_OWNED_SHARED, __ATOMIC_RELEASE);
}

static enum gm_owned_by come(struct gm_owned *owned, uintptr_t thread)
{
	uintptr_t owner;

	if (gm_owned_hold(owned, thread))
		return GM_OWNED_BY_THIS;
	owner = __atomic_load_n(&owned->owner, __ATOMIC_ACQUIRE);
	if (owner && owner != thread && owner != GM_OWNED_SHARED && owner != GM_OWNED_CLOSED &&
	    __atomic_compare_exchange_n(&owned->owner, &owner, GM_OWNED_CLOSED, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		share(owned);
		owner = GM_OWNED_SHARED;
	}
	return owner == GM_OWNED_SHARED ? GM_OWNED_BY_ALL : GM_OWNED_NOT_NOW;
}

enum gm_owned_by gm_owned_come(struct gm_owned *owned, uintptr_t thread)
{
	int saved = errno;
	enum gm_owned_by by = come(owned, thread);

	errno = saved;
	return by;
}

void gm_owned_claim(struct gm_owned *owned, uintptr_t thread)
{
	uintptr_t owner = 0;
	int saved = errno;

	__atomic_compare_exchange_n(&owned->owner, &owner, has_barrier() ? thread : GM_OWNED_SHARED, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	errno = saved;
}
