/*
 * The lock (store/lock.h). First two threads in turns: one holds it until the other is about to
 * sleep, which then is to be woken; sleep has no time-out here, so a wake-up that does not come is
 * a hang. Then several at once, with time-outs: what the lock guards is to add up, whether a holder
 * gives it back at once or lets others run meanwhile, and whether it was waited for or tried.
 * Arguments: turns, how often each thread takes it.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long futex(long number, uint32_t *word, int operation, int value, const void *timeout,
		  void *word2, int value3);
#define syscall futex
#include "store/lock.h"
#undef syscall

#define THREADS 6

static struct gm_lock lock;
static unsigned long turns, times;
static unsigned long turn, done; /* numbers of turns (atomic) */
static unsigned long guarded;
static int endless;

static long futex(long number, uint32_t *word, int operation, int value, const void *timeout,
		  void *word2, int value3)
{
	return syscall(number, word, operation, value, endless ? NULL : timeout, word2, value3);
}

static void wait_for(const unsigned long *number, unsigned long value)
{
	while (__atomic_load_n(number, __ATOMIC_ACQUIRE) != value)
		sched_yield();
}

/* ---- in turns ---- */

static void *sleeper(void *unused)
{
	unsigned long i;

	for (i = 1; i <= turns; i++) {
		wait_for(&turn, i);
		gm_lock_acquire(&lock);
		guarded += guarded == 2 * i - 1;
		gm_lock_release(&lock);
		__atomic_store_n(&done, i, __ATOMIC_RELEASE);
	}
	return unused;
}

static int in_turns(void)
{
	pthread_t thread;
	unsigned long i;

	endless = 1;
	if (pthread_create(&thread, NULL, sleeper, NULL))
		return 2;
	for (i = 1; i <= turns; i++) {
		gm_lock_acquire(&lock);
		__atomic_store_n(&turn, i, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&lock.sleepers, __ATOMIC_ACQUIRE))
			sched_yield();
		guarded++;
		gm_lock_release(&lock);
		wait_for(&done, i);
	}
	pthread_join(thread, NULL);
	endless = 0;
	return guarded == 2 * turns && !lock.word && !lock.sleepers ? 0 : 3;
}

/* ---- all at once ---- */

static void take(unsigned long i)
{
	if (i % 7)
		gm_lock_acquire(&lock);
	else
		while (!gm_lock_try(&lock))
			sched_yield();
}

static void *adder(void *unused)
{
	unsigned long i, before;

	for (i = 0; i < times; i++) {
		take(i);
		before = guarded;
		if (i % 32 == 0)
			sched_yield(); /* others come to wait */
		guarded = before + 1;
		gm_lock_release(&lock);
	}
	return unused;
}

static int at_once(void)
{
	pthread_t threads[THREADS];
	unsigned i;

	guarded = 0;
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, adder, NULL))
			return 2;
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return guarded == THREADS * times && !lock.word && !lock.sleepers ? 0 : 4;
}

int main(int argc, char **argv)
{
	int error;

	turns = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;
	times = argc > 2 ? strtoul(argv[2], NULL, 10) : 50000;
	error = in_turns();
	if (!error)
		error = at_once();
	if (error)
		fprintf(stderr, "guarded %lu, word %u, sleepers %u\n", guarded, lock.word,
			lock.sleepers);
	return error;
}
