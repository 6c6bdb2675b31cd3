/*
 * A guard around the tracker's own system calls, which the program must not notice. Within it no
 * write raises SIGPIPE, SIGXFSZ or SIGTTOU and the thread is not cancelled; errno is restored at
 * its end. For signals the guard calls the kernel directly, so that no other preload's sigprocmask
 * runs. It is safe in signal handlers.
 */
#ifndef GM_STORE_SYSCALL_GUARD_H
#define GM_STORE_SYSCALL_GUARD_H

#include <signal.h>
#include <stdint.h>

#define GM_SIGNAL_BIT(signal) (1ull << ((signal)-1))

/*
 * The mask that keeps the program's handlers out of a critical section: all signals but those that
 * an instruction raises. The kernel ends a process that raises such a signal while it is blocked,
 * and a program may handle it: SIGSYS where a sandbox or an emulator serves system calls, SIGSEGV
 * where pages are mapped or unprotected when they are first touched.
 */
#define GM_ALL_SIGNALS                                                                             \
	(~(GM_SIGNAL_BIT(SIGSYS) | GM_SIGNAL_BIT(SIGSEGV) | GM_SIGNAL_BIT(SIGBUS) |                \
	   GM_SIGNAL_BIT(SIGILL) | GM_SIGNAL_BIT(SIGFPE) | GM_SIGNAL_BIT(SIGTRAP)))

struct gm_syscall_guard {
	uint64_t mask;	  /* the thread's signal mask before */
	uint64_t pending; /* signals that were pending before, which belong to the program */
	int cancel, error;
};

void gm_syscall_guard_enter(struct gm_syscall_guard *guard);

/*
 * Removes the signals that were raised within the guard, and restores the mask, the cancel state
 * and errno.
 */
void gm_syscall_guard_leave(struct gm_syscall_guard *guard);

#endif
