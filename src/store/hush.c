/*
 * Signals, cancellation and errno around the tracker's own system calls (hush.h).
 */
#include "store/hush.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BIT(signal) (1ull << ((signal)-1))

/* Both are sent to the thread whose write failed, never to the process. */
#define OURS (BIT(SIGPIPE) | BIT(SIGXFSZ))

static uint64_t pending_now(void)
{
	uint64_t pending = 0;

	syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	return pending;
}

void gm_hush_begin(struct gm_hush *hush)
{
	uint64_t ours = OURS;

	hush->error = errno;
	hush->mask = 0;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &ours, &hush->mask, sizeof(ours));
	hush->pending = pending_now();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &hush->cancel);
}

void gm_hush_end(struct gm_hush *hush)
{
	uint64_t raised = pending_now() & OURS & ~hush->pending;
	struct timespec at_once = {0, 0};

	if (raised)
		while (syscall(SYS_rt_sigtimedwait, &raised, NULL, &at_once, sizeof(raised)) > 0)
			;
	pthread_setcancelstate(hush->cancel, NULL);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &hush->mask, NULL, sizeof(hush->mask));
	errno = hush->error;
}
