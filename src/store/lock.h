/*
 * A lock on one futex word (Drepper's three states): no libpthread needed, its state is plain memory
 * that the child of a fork can reset, and a try-lock is safe in a signal handler.
 */
#ifndef GM_STORE_LOCK_H
#define GM_STORE_LOCK_H

#include "store/hot.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct gm_lock {
	uint32_t word; /* 0 free, 1 held, 2 held and waited for */
};

static inline bool gm_lock_try(struct gm_lock *lock)
{
	uint32_t free_word = 0;

	return __atomic_compare_exchange_n(&lock->word, &free_word, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* Apart from the rest, and rarely called: errno stays as it was. */
static __attribute__((noinline, cold, unused)) void gm_lock_wait(struct gm_lock *lock)
{
	int saved = errno;

	while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	errno = saved;
}

static __attribute__((noinline, cold, unused)) void gm_lock_wake(struct gm_lock *lock)
{
	int saved = errno;

	syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}

static inline void gm_lock_acquire(struct gm_lock *lock)
{
	if (__builtin_expect(!gm_lock_try(lock), 0))
		gm_lock_wait(lock);
}

static inline void gm_lock_release(struct gm_lock *lock)
{
	if (__builtin_expect(__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2, 0))
		gm_lock_wake(lock);
}

#endif
