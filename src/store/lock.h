/*
 * A lock on a futex: no libpthread needed, its state is plain memory that the child of a fork can reset, and
 * a try-lock is safe in a signal handler.
 *
 * Giving it back is a plain store, for an event gives it back as often as it takes it, and a locked
 * instruction costs more than most of what is done under it. The processor may then read `sleepers` before
 * others see that the lock is free, and so miss one that has just begun to wait. Therefore nobody sleeps
 * longer than a millisecond: a wake-up that was missed, which takes two threads within the few nanoseconds
 * that a store needs to be seen, is late by that and not lost.
 */
#ifndef GM_STORE_LOCK_H
#define GM_STORE_LOCK_H

#include "store/hot.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct gm_lock {
	uint32_t word;	   /* 0 free, 1 held */
	uint32_t sleepers; /* GM_LOCK_SLEEPER for each thread that sleeps or is about to, and GM_LOCK_WOKEN */
};

#define GM_LOCK_WOKEN	 1u /* one was woken and did not come to it yet: no other needs to be */
#define GM_LOCK_SLEEPER	 2u
#define GM_LOCK_SPINS	 100 /* a few times as long as an event holds it */
#define GM_LOCK_SLEEP_NS 1000000

static inline bool gm_lock_try(struct gm_lock *lock)
{
	uint32_t free_word = 0;

	return __atomic_compare_exchange_n(&lock->word, &free_word, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* True once it is held. */
static inline bool gm_lock_spin(struct gm_lock *lock)
{
	unsigned i;

	for (i = 0; i < GM_LOCK_SPINS; i++) {
		if (!__atomic_load_n(&lock->word, __ATOMIC_RELAXED) && gm_lock_try(lock))
			return true;
#ifdef __x86_64__
		__builtin_ia32_pause();
#endif
	}
	return false;
}

/* Apart from the rest, and rarely called: errno stays as it was. */
static __attribute__((noinline, cold, unused)) void gm_lock_wait(struct gm_lock *lock)
{
	const struct timespec sleep = {.tv_nsec = GM_LOCK_SLEEP_NS};
	int saved = errno;

	if (gm_lock_spin(lock))
		return;
	__atomic_fetch_add(&lock->sleepers, GM_LOCK_SLEEPER, __ATOMIC_SEQ_CST);
	while (!gm_lock_try(lock)) {
		syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 1, &sleep, NULL, 0);
		__atomic_fetch_and(&lock->sleepers, ~GM_LOCK_WOKEN, __ATOMIC_SEQ_CST);
	}
	__atomic_fetch_sub(&lock->sleepers, GM_LOCK_SLEEPER, __ATOMIC_RELAXED);
	errno = saved;
}

static __attribute__((noinline, cold, unused)) void gm_lock_wake(struct gm_lock *lock)
{
	int saved = errno;

	if (__atomic_load_n(&lock->sleepers, __ATOMIC_RELAXED) & GM_LOCK_WOKEN ||
	    __atomic_fetch_or(&lock->sleepers, GM_LOCK_WOKEN, __ATOMIC_SEQ_CST) & GM_LOCK_WOKEN)
		return;
	if (syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) < 1) /* none sleeps yet */
		__atomic_fetch_and(&lock->sleepers, ~GM_LOCK_WOKEN, __ATOMIC_SEQ_CST);
	errno = saved;
}

static inline void gm_lock_acquire(struct gm_lock *lock)
{
	if (__builtin_expect(!gm_lock_try(lock), 0))
		gm_lock_wait(lock);
}

static inline void gm_lock_release(struct gm_lock *lock)
{
	__atomic_store_n(&lock->word, 0, __ATOMIC_RELEASE);
	if (__builtin_expect(__atomic_load_n(&lock->sleepers, __ATOMIC_RELAXED) != 0, 0))
		gm_lock_wake(lock);
}

/* In the child of a fork: the thread that held it is not there. */
static inline void gm_lock_reset(struct gm_lock *lock)
{
	*lock = (struct gm_lock){0};
}

#endif
