/*
 * A guard around the tracker's own system calls, which the program must not notice. Within it no
 * write raises SIGPIPE or SIGXFSZ and the thread is not cancelled; errno is restored at its end.
 * For signals the guard calls the kernel directly, so that no other preload's sigprocmask runs. It
 * is safe in signal handlers.
 */
#ifndef GM_STORE_SYSCALL_GUARD_H
#define GM_STORE_SYSCALL_GUARD_H

#include <stdint.h>

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
