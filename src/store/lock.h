/*
 * A lock for short updates that needs no libpthread. Its state is plain memory that the child of a
 * fork can reset, and trying to take it is safe in a signal handler.
 *
 * PROTOCOL
 *
 * `word` is 1 while the lock is held. A thread takes the lock by a compare-and-swap from 0 to 1 and
 * releases it by a plain store of 0 with release order: an event releases the lock as often as it
 * takes it, and a locked instruction costs more than most of what is done under the lock. A release
 * wakes nobody.
 *
 * A thread that finds the lock held tries a few more times, each after twice the pause of the one
 * before, for about as long as a few events hold the lock. If all tries fail, other threads take
 * the lock again and again, and the thread goes to sleep, so that they do so without it. What an
 * event changes then stays in the caches of a processor or two. The alternative, to hand the lock
 * over at each event, costs several times the event itself, because a dozen cache lines move with
 * the lock.
 *
 * `queue` makes one of the sleeping threads the heir, which tries again after each of its sleeps.
 * The others sleep in the queue until the heir has the lock and wakes one of them, which becomes
 * the heir. Thus one thread at most wakes up now and then, however many wait. The queue holds up no
 * thread for good: a thread that waited GM_LOCK_QUEUE_NS in it tries once before it waits again.
 * This matters when an heir is gone, because a signal handler of the program left its wait by a
 * jump.
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
	uint32_t word;	/* 0 free, 1 held */
	uint32_t queue; /* 0 no heir, 1 an heir, 2 an heir and perhaps others that wait to be it */
};

#define GM_LOCK_PAUSES	 8	 /* before the last try of a spin, which began with one */
#define GM_LOCK_SLEEP_NS 200000	 /* the heir's first sleep; each is twice the one before */
#define GM_LOCK_LONG_NS	 1000000 /* but not more than twice this */
#define GM_LOCK_QUEUE_NS 50000000

/* Takes the lock if it is free, and returns whether it did. Safe in a signal handler. */
static inline bool gm_lock_try(struct gm_lock *lock)
{
	uint32_t free_word = 0;

	return __atomic_compare_exchange_n(&lock->word, &free_word, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* Tries a few times, and returns whether the lock was taken. */
static inline bool gm_lock_spin(struct gm_lock *lock)
{
	unsigned pauses, i;

	for (pauses = 1; pauses <= GM_LOCK_PAUSES; pauses *= 2) {
#ifdef __x86_64__
		for (i = 0; i < pauses; i++)
			__builtin_ia32_pause();
#else
		for (i = 0; i < pauses; i++)
			__asm__ volatile("" ::: "memory");
#endif
		if (!__atomic_load_n(&lock->word, __ATOMIC_RELAXED) && gm_lock_try(lock))
			return true;
	}
	return false;
}

/* Sleeps for `ns` or until it is woken, if the word has this value. Returns false after `ns`. */
static inline bool gm_lock_sleep(uint32_t *word, uint32_t value, long ns)
{
	const struct timespec time = {.tv_nsec = ns};

	return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0) == 0 ||
	       errno != ETIMEDOUT;
}

/*
 * Waits until the calling thread is the heir. Returns false if it is not after GM_LOCK_QUEUE_NS.
 */
static inline bool gm_lock_await_turn(struct gm_lock *lock)
{
	uint32_t nobody = 0;

	if (__atomic_compare_exchange_n(&lock->queue, &nobody, 1, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		return true;
	while (__atomic_exchange_n(&lock->queue, 2, __ATOMIC_RELAXED))
		if (!gm_lock_sleep(&lock->queue, 2, GM_LOCK_QUEUE_NS))
			return false;
	return true;
}

static inline void gm_lock_leave_queue(struct gm_lock *lock)
{
	if (__atomic_exchange_n(&lock->queue, 0, __ATOMIC_RELAXED) == 2)
		syscall(SYS_futex, &lock->queue, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* The slow path of gm_lock_acquire. Keeps errno. */
static GM_COLD __attribute__((unused)) void gm_lock_wait(struct gm_lock *lock)
{
	long sleep_ns = GM_LOCK_SLEEP_NS;
	bool is_heir;
	int saved;

	if (gm_lock_spin(lock))
		return;
	saved = errno;
	is_heir = gm_lock_await_turn(lock);
	while (!gm_lock_spin(lock)) {
		if (!is_heir) {
			is_heir = gm_lock_await_turn(lock);
			continue;
		}
		gm_lock_sleep(&lock->word, 1, sleep_ns);
		if (sleep_ns < GM_LOCK_LONG_NS)
			sleep_ns *= 2;
	}
	gm_lock_leave_queue(lock);
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
}

/* Frees the lock in the child of a fork, where the thread that held it does not exist. */
static inline void gm_lock_reset(struct gm_lock *lock)
{
	*lock = (struct gm_lock){0};
}

#endif
