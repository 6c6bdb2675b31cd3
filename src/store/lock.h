/*
 * A lock on a futex. It needs no libpthread, its state is plain memory that the child of a fork can
 * reset, and trying to take it is safe in a signal handler.
 *
 * PROTOCOL
 *
 * `word` is 1 while the lock is held. A thread takes the lock by a compare-and-swap from 0 to 1 and
 * releases it by a plain store of 0 with release order. The release is a plain store because an
 * event releases the lock as often as it takes it, and a locked instruction costs more than most of
 * what is done under the lock.
 *
 * A thread that finds the lock held tries again for a while, and then adds GM_LOCK_SLEEPER to
 * `sleepers` and sleeps on `word` until it gets the lock. A thread that has released the lock reads
 * `sleepers`, and if any thread sleeps it wakes one. GM_LOCK_WOKEN is set from that wake-up until
 * the woken thread has run, so that the releases in between, of which there can be thousands, do
 * not wake further threads.
 *
 * THE RACE
 *
 * A processor may execute the load of `sleepers` before other processors see its store to `word`. A
 * thread that begins to sleep within these nanoseconds still sees the lock held, and the releasing
 * thread does not see the sleeper. Such a wake-up is missed. Therefore no thread sleeps longer than
 * a millisecond before it looks again: a missed wake-up delays a thread and is not lost.
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

/* A zero-initialised lock is free. */
struct gm_lock {
	uint32_t word;	   /* 0 free, 1 held */
	uint32_t sleepers; /* GM_LOCK_SLEEPER for each thread that sleeps or is about to, and
			      GM_LOCK_WOKEN */
};

#define GM_LOCK_WOKEN	 1u
#define GM_LOCK_SLEEPER	 2u
#define GM_LOCK_SPINS	 100 /* a few times as long as an event holds the lock */
#define GM_LOCK_SLEEP_NS 1000000

/* Takes the lock if it is free, and returns whether it did. Safe in a signal handler. */
static inline bool gm_lock_try(struct gm_lock *lock)
{
	uint32_t free_word = 0;

	return __atomic_compare_exchange_n(&lock->word, &free_word, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* Tries GM_LOCK_SPINS times, and returns whether the lock was taken. */
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

/* The slow path of gm_lock_acquire. Keeps errno. */
static GM_COLD __attribute__((unused)) void gm_lock_wait(struct gm_lock *lock)
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

/*
 * The slow path of gm_lock_release: wakes one thread unless one was woken and has not run yet.
 * Keeps errno.
 */
static GM_COLD __attribute__((unused)) void gm_lock_wake(struct gm_lock *lock)
{
	int saved = errno;

	if (__atomic_load_n(&lock->sleepers, __ATOMIC_RELAXED) & GM_LOCK_WOKEN ||
	    __atomic_fetch_or(&lock->sleepers, GM_LOCK_WOKEN, __ATOMIC_SEQ_CST) & GM_LOCK_WOKEN)
		return;
	if (syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) <
	    1) /* none sleeps yet */
		__atomic_fetch_and(&lock->sleepers, ~GM_LOCK_WOKEN, __ATOMIC_SEQ_CST);
	errno = saved;
}

/*
 * Takes the lock and waits for it if need be. A signal handler must not call it: its thread may
 * hold the lock.
 */
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

/* Frees the lock in the child of a fork, where the thread that held it does not exist. */
static inline void gm_lock_reset(struct gm_lock *lock)
{
	*lock = (struct gm_lock){0};
}

#endif
