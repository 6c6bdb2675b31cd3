/*
 * The lock (store/lock.h). First in turns: it is held until one thread waits as the heir and
 * another one in the queue, which the first is to wake. There is no time-out in the queue here, so
 * a wake-up that does not come is a hang. Then a thread waits in a queue whose heir is gone. Then
 * threads time out in the queue again and again, and one of them all the while is the heir. Then
 * several at once, with time-outs: what the lock guards is to add up, whether a holder gives it
 * back at once or lets others run meanwhile, and whether it was waited for or tried. Arguments:
 * turns, how often each thread takes it.
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
static unsigned long turn,
	done; /* the number of the turn; threads that are done with it (atomic) */
static unsigned long guarded;
static int endless, brief; /* the time-outs in the queue */
static unsigned heirs,
	timeouts; /* threads that slept as the heir; ends of sleeps in the queue (atomic) */
static __thread int is_heir;

static long futex(long number, uint32_t *word, int operation, int value, const void *timeout,
		  void *word2, int value3)
{
	static const struct timespec brief_time = {.tv_nsec = 100000};
	long result;

	if (word == &lock.queue)
		timeout = endless ? NULL : brief ? &brief_time : timeout;
	else if (!is_heir && (is_heir = 1))
		__atomic_fetch_add(&heirs, 1, __ATOMIC_RELAXED);
	result = syscall(number, word, operation, value, timeout, word2, value3);
	if (word == &lock.queue && result && errno == ETIMEDOUT)
		__atomic_fetch_add(&timeouts, 1, __ATOMIC_RELAXED);
	return result;
}

static int is_free(void)
{
	return !lock.word && !lock.queue;
}

/* ---- in turns ---- */

static void *waiter(void *unused)
{
	unsigned long i;

	for (i = 1; i <= turns; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != i)
			sched_yield();
		gm_lock_acquire(&lock);
		guarded++;
		gm_lock_release(&lock);
		__atomic_fetch_add(&done, 1, __ATOMIC_RELEASE);
	}
	return unused;
}

static void wait_for_queue(void)
{
	while (__atomic_load_n(&lock.queue, __ATOMIC_ACQUIRE) != 2)
		sched_yield();
}

static int in_turns(void)
{
	pthread_t threads[2];
	unsigned long i;

	endless = 1;
	for (i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, waiter, NULL))
			return 2;
	for (i = 1; i <= turns; i++) {
		gm_lock_acquire(&lock);
		__atomic_store_n(&turn, i, __ATOMIC_RELEASE);
		wait_for_queue();
		guarded++;
		gm_lock_release(&lock);
		while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != 2 * i)
			sched_yield();
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	endless = 0;
	return guarded == 3 * turns && is_free() ? 0 : 3;
}

/* ---- an heir that is gone ---- */

static void *take_once(void *unused)
{
	gm_lock_acquire(&lock);
	gm_lock_release(&lock);
	return unused;
}

static int without_heir(void)
{
	pthread_t thread;

	gm_lock_acquire(&lock);
	lock.queue = 1;
	if (pthread_create(&thread, NULL, take_once, NULL))
		return 2;
	wait_for_queue();
	gm_lock_release(&lock);
	pthread_join(thread, NULL);
	return is_free() ? 0 : 5;
}

/* ---- time-outs in the queue ---- */

static int one_heir(void)
{
	pthread_t threads[THREADS];
	unsigned i, seen;

	brief = 1;
	heirs = timeouts = 0;
	gm_lock_acquire(&lock);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, take_once, NULL))
			return 2;
	while (__atomic_load_n(&timeouts, __ATOMIC_RELAXED) < 10 * THREADS)
		sched_yield();
	seen = __atomic_load_n(&heirs, __ATOMIC_RELAXED);
	gm_lock_release(&lock);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	brief = 0;
	return seen == 1 && is_free() ? 0 : 6;
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
	return guarded == THREADS * times && is_free() ? 0 : 4;
}

int main(int argc, char **argv)
{
	int error;

	turns = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;
	times = argc > 2 ? strtoul(argv[2], NULL, 10) : 50000;
	error = in_turns();
	if (!error)
		error = without_heir();
	if (!error)
		error = one_heir();
	if (!error)
		error = at_once();
	if (error)
		fprintf(stderr, "guarded %lu, word %u, queue %u\n", guarded, lock.word, lock.queue);
	return error;
}
