/*
 * The guard of signals, cancellation and errno around the tracker's own system calls.
 */
#include "store/syscall_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * The signals of a failed write. The kernel sends both to the thread that wrote, never to the
 * process.
 */
#define WRITE_SIGNALS (GM_SIGNAL_BIT(SIGPIPE) | GM_SIGNAL_BIT(SIGXFSZ))

/*
 * A background process that writes to a terminal with TOSTOP is stopped by SIGTTOU. While a thread
 * blocks SIGTTOU, its writes raise none and succeed [termios(3), POSIX 11.1.4]: one that becomes
 * pending is the program's.
 */
#define TERMINAL_SIGNAL GM_SIGNAL_BIT(SIGTTOU)

static uint64_t pending_now(void)
{
	uint64_t pending = 0;

	syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	return pending;
}

void gm_syscall_guard_enter(struct gm_syscall_guard *guard)
{
	uint64_t blocked = WRITE_SIGNALS | TERMINAL_SIGNAL;

	guard->error = errno;
	guard->mask = 0;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &guard->mask, sizeof(blocked));
	guard->pending = pending_now();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
}

void gm_syscall_guard_leave(struct gm_syscall_guard *guard)
{
	uint64_t raised = pending_now() & WRITE_SIGNALS & ~guard->pending;
	struct timespec at_once = {0, 0};

	if (raised)
		while (syscall(SYS_rt_sigtimedwait, &raised, NULL, &at_once, sizeof(raised)) > 0)
			;
	pthread_setcancelstate(guard->cancel, NULL);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &guard->mask, NULL, sizeof(guard->mask));
	errno = guard->error;
}
