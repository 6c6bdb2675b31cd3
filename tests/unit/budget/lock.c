/*
 * The lock (store/lock.h). First two threads in turns: one holds it until the other is about to sleep, which
 * then is to be woken; sleep has no time-out here, so a wake-up that does not come is a hang. Then several at
 * once, with time-outs: what the lock guards is to add up, whether a holder gives it back at once or lets
 * others run meanwhile, and whether it was waited for or tried.
 *
 * Then locks that can belong to a thread (store/owned_lock.h): as long as one thread comes it owns them soon
 * and does nothing locked; several come for many of them in the same order, so that each is taken away from
 * its owner while that is at it, or has several that would own it, and what they guard is to add up; the same
 * where the kernel gives no barrier, from the start or from some moment on. Stores are held up meanwhile: without
 * the barrier two would hold a lock at once. A thread that was cancelled leaves none behind.
 * Arguments: turns, how often each thread takes it, locks.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static long futex(long number, uint32_t *word, int operation, int value, const void *timeout, void *word2,
		  int value3);
#define syscall futex
#include "store/lock.h"
#undef syscall
#include "store/owned_lock.h"

#define THREADS 6

static struct gm_lock lock;
static unsigned long turns, times;
static unsigned long turn, done; /* numbers of turns (atomic) */
static unsigned long guarded;
static int endless;

static long futex(long number, uint32_t *word, int operation, int value, const void *timeout, void *word2,
		  int value3)
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

/* ---- locks that can belong to a thread ---- */

#define TAKES (3 * GM_OWNED_LOCK_ROW)

struct counted {
	struct gm_owned_lock lock;
	unsigned long guarded;
	unsigned long has_owner; /* (atomic) */
};

static struct counted *owned;
static unsigned long locks, arrived;

#define FAR_BYTES (16u << 20) /* more than the near caches hold */

/* Has the processor's stores wait for lines that are far away: what is stored next is seen late. */
static void store_far_away(void)
{
	static __thread char *far;
	static __thread unsigned long at;
	unsigned i;

	if (!far)
		far = calloc(1, FAR_BYTES);
	for (i = 0; far && i < 24; i++) {
		at = (at + 4099 * 64) % FAR_BYTES;
		*(volatile char *)(far + at) = 1;
	}
}

static void count(struct counted *one, unsigned long i)
{
	unsigned long before;

	if (i % 3 == 0 && i > GM_OWNED_LOCK_ROW)
		store_far_away();
	if (i % 5)
		gm_owned_lock_acquire(&one->lock);
	else
		while (!gm_owned_lock_try(&one->lock))
			sched_yield();
	before = one->guarded;
	if (i % 16 == 0 && i > GM_OWNED_LOCK_ROW)
		sched_yield();
	one->guarded = before + 1;
	gm_owned_lock_release(&one->lock);
}

/* Every other lock has an owner before others come for it. */
static void *comer(void *number)
{
	unsigned long i, k, self = (uintptr_t)number;

	__atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL);
	wait_for(&arrived, THREADS);
	for (k = 0; k < locks; k++) {
		if (k % 2 && k / 2 % THREADS != self)
			wait_for(&owned[k].has_owner, 1);
		for (i = 0; i < TAKES; i++) {
			count(&owned[k], i);
			if (k % 2 && i == GM_OWNED_LOCK_ROW)
				__atomic_store_n(&owned[k].has_owner, 1, __ATOMIC_RELEASE);
		}
	}
	return NULL;
}

/* A signal's handler that comes while it is held does not get it, the time when it gets its owner included. */
static void own(struct gm_owned_lock *one)
{
	unsigned i;

	for (i = 0; i < GM_OWNED_LOCK_ROW; i++) {
		gm_owned_lock_acquire(one);
		if (gm_owned_lock_try(one))
			_exit(11);
		gm_owned_lock_release(one);
	}
}

static int of_one(void)
{
	struct gm_owned_lock one = {0};
	unsigned i;

	own(&one);
	for (i = 0; i < 3; i++) {
		gm_owned_lock_acquire(&one);
		if (one.owned.owner != gm_thread_pointer() || !one.owned.held || one.lock.word ||
		    gm_owned_lock_try(&one))
			return 5;
		gm_owned_lock_release(&one);
		if (one.owned.held)
			return 6;
	}
	return 0;
}

static int of_several(unsigned long number)
{
	pthread_t threads[THREADS];
	unsigned long k;
	unsigned i;

	locks = number;
	arrived = 0;
	owned = calloc(locks, sizeof(*owned));
	if (!owned)
		return 2;
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, comer, (void *)(uintptr_t)i))
			return 2;
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (k = 0; k < locks; k++)
		if (owned[k].guarded != (unsigned long)THREADS * TAKES || owned[k].lock.lock.word ||
		    owned[k].lock.owned.held || owned[k].lock.owned.busy) {
			guarded = owned[k].guarded;
			return 7;
		}
	free(owned);
	return 0;
}

static struct counted abandoned;

static void *cancelled(void *unused)
{
	pthread_cancel(pthread_self());
	gm_owned_lock_acquire(&abandoned.lock);
	abandoned.guarded++;
	gm_owned_lock_release(&abandoned.lock);
	return unused;
}

/* A thread that was cancelled takes the ownership away: no call that would end it may be on the way. */
static int of_cancelled(void)
{
	pthread_t thread;

	own(&abandoned.lock);
	if (pthread_create(&thread, NULL, cancelled, NULL) || pthread_join(thread, NULL))
		return 2;
	return abandoned.guarded == 1 && gm_owned_lock_try(&abandoned.lock) ? 0 : 10;
}

/* From now on the kernel refuses membarrier. */
static int refuse_barriers(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(rules) / sizeof(*rules), rules};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* In a child: refused `late`, when it is known that there is one, or from the start. */
static int without_barrier(int late)
{
	int status;

	if (!fork()) {
		if (late && of_one())
			_exit(8);
		if (refuse_barriers()) {
			fprintf(stderr, "no filter can be set here: not tried without a barrier\n");
			_exit(0);
		}
		_exit(late && of_cancelled() ? 10 : of_several(late ? 8 : locks));
	}
	if (wait(&status) < 0)
		return 2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
}

static int owned_locks(unsigned long number)
{
	int error;

	locks = number;
	error = without_barrier(0);
	if (!error)
		error = without_barrier(1);
	if (!error)
		error = of_cancelled();
	if (!error)
		error = of_one();
	return error ? error : of_several(number);
}

int main(int argc, char **argv)
{
	int error;

	turns = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;
	times = argc > 2 ? strtoul(argv[2], NULL, 10) : 50000;
	error = in_turns();
	if (!error)
		error = at_once();
	if (!error)
		error = owned_locks(argc > 3 ? strtoul(argv[3], NULL, 10) : 2000);
	if (error)
		fprintf(stderr, "guarded %lu, word %u, sleepers %u\n", guarded, lock.word, lock.sleepers);
	return error;
}
