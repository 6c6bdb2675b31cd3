/*
 * Calls a function in a thread of another process.
 *
 * The call ends by itself: under it lies a signal's frame, to which the function returns, and the
 * kernel restores all registers of the thread from that frame. The thread is detached at once, so
 * it does not matter whether this process still exists when the function returns. One thread is
 * stopped and never several, because the function may wait for a lock that another one holds.
 *
 * A stop ends some system calls by EINTR (epoll_wait, sigtimedwait and a few more), and after a
 * call from outside the kernel cannot resume those whose remaining time it keeps (nanosleep, poll
 * with a timeout). The thread makes such a call again, so the program sees no error; but the time
 * of its wait begins anew. So other threads are tried first, for a second.
 */
#ifndef GM_ATTACH_REMOTE_CALL_H
#define GM_ATTACH_REMOTE_CALL_H

#include "attach/safe_place.h"

struct gm_injector {
	const struct gm_target *target;
	struct gm_safe_place *place;
	uint64_t end;	  /* libc's own end of a signal handler: mov $15, %rax; syscall */
	bool interrupt;	  /* at once also threads in calls whose time begins anew */
	bool outside_cuda; /* the calls call the driver: the thread may not be in CUDA */
	unsigned stops;	  /* threads stopped so far */
	double paused_us; /* time for which the thread of the last call was stopped */
	const char *why;  /* reason why the last thread that was looked at would not do */
	pid_t thread;	  /* in which the last call was made */
};

/* Returns false after a sentence in `error`. */
bool gm_injector_open(struct gm_injector *injector, const struct gm_target *target, char *error,
		      size_t error_bytes);
void gm_injector_close(struct gm_injector *injector);

/*
 * Has a thread call function(text, argument), or function(number, argument) if `text` is NULL.
 * Tries threads for up to `wait_ms`. The call is under way, or over, when this returns true; false,
 * after a sentence in `error`, means that nothing was called.
 */
bool gm_inject(struct gm_injector *injector, uint64_t function, const char *text, uint64_t number,
	       uint64_t argument, unsigned wait_ms, char *error, size_t error_bytes);

/*
 * Takes the latest call back, of which nothing has been executed although gm_inject returned true:
 * the thread does not run, because it is stopped or frozen. False if the call has begun.
 */
bool gm_withdraw(struct gm_injector *injector);

/*
 * True if the thread of the latest call seems to have returned from it: the stack pointer is above
 * the frame to which the call returns. A handler on a signal stack that lies there looks the same
 * while it runs. The thread is stopped for a moment if it is not waiting in the kernel.
 */
bool gm_has_returned(struct gm_injector *injector);

#endif
