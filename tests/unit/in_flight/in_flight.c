/*
 * Calls under way that change memory, as threads count them (recorder/state/in_flight.h): one
 * thread, more threads than have places of their own, threads that come and go, the child of a
 * fork, and whether two readings that say "quiet" and the same count really have nothing between
 * them. Arguments: calls of each thread meanwhile.
 */
#include "recorder/state/in_flight.h"
#include "track/thread_id.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY	200 /* threads at a time, over three times the places */
#define WRITERS 4

__thread struct gm_thread gm_thread;

uint32_t gm_ask_thread_id(void)
{
	return gm_thread.id = (uint32_t)syscall(SYS_gettid);
}

static unsigned failures;

#define EXPECT(what)                                                                               \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("%s:%d: %s\n", __func__, __LINE__, #what);                          \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

static uint64_t begun_so_far(void)
{
	uint64_t begun;

	gm_in_flight_none(&begun);
	return begun;
}

/* ---- one thread ---- */

static void one_thread(void)
{
	uint64_t before = begun_so_far(), begun;

	EXPECT(gm_in_flight_none(&begun) && begun == before);
	gm_in_flight_begin();
	EXPECT(gm_in_flight_none(&begun) &&
	       begun == before + 1);		      /* its own call is not another thread's */
	gm_in_flight_begin();			      /* the first was left by a jump */
	EXPECT(gm_in_flight_none(&begun) && begun == before + 1);
	gm_in_flight_end();
	gm_in_flight_end(); /* and its end was told after all */
	EXPECT(gm_in_flight_none(&begun) && begun == before + 1);
	gm_in_flight_begin();
	gm_in_flight_end();
	EXPECT(gm_in_flight_none(&begun) && begun == before + 2);
}

/* ---- many ---- */

static pthread_barrier_t begun_all, may_end;

static void *one_call(void *data)
{
	unsigned *with_counters = data;

	gm_in_flight_begin();
	if (gm_thread.in_flight)
		__atomic_fetch_add(with_counters, 1, __ATOMIC_RELAXED);
	pthread_barrier_wait(&begun_all);
	pthread_barrier_wait(&may_end);
	gm_in_flight_end();
	return NULL;
}

static void in_child(void)
{
	uint64_t begun;

	EXPECT(!gm_in_flight_none(&begun)); /* as long as the parent's threads are not forgotten */
	gm_in_flight_forget();
	EXPECT(gm_thread.id == (uint32_t)getpid()); /* whose place it is */
	EXPECT(gm_in_flight_none(&begun));
	gm_in_flight_begin();
	EXPECT(gm_in_flight_none(&begun));
	gm_in_flight_end();
	EXPECT(gm_in_flight_none(&begun));
	_exit(failures != 0);
}

static void many_threads(void)
{
	uint64_t before = begun_so_far(), begun;
	pthread_t threads[MANY];
	unsigned i, with_counters = 0;
	int status;

	pthread_barrier_init(&begun_all, NULL, MANY + 1);
	pthread_barrier_init(&may_end, NULL, MANY + 1);
	for (i = 0; i < MANY; i++)
		pthread_create(&threads[i], NULL, one_call, &with_counters);
	pthread_barrier_wait(&begun_all);
	EXPECT(!gm_in_flight_none(&begun) && begun == before + MANY);
	EXPECT(with_counters > 0 && with_counters < MANY);
	fflush(stdout);
	if (fork() == 0)
		in_child();
	wait(&status);
	EXPECT(status == 0);
	pthread_barrier_wait(&may_end);
	for (i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
	EXPECT(gm_in_flight_none(&begun) && begun == before + MANY);
}

/* ---- between two readings ---- */

static uint64_t device, rounds;
static uint32_t writing;

/* So that what is to be seen has time to come between. */
static void dawdle(unsigned turns)
{
	while (turns--)
		__asm__ volatile("" ::: "memory");
}

static void *write_device(void *unused)
{
	uint64_t i;

	for (i = 0; i < rounds; i++) {
		gm_in_flight_begin();
		__atomic_fetch_add(&device, 1, __ATOMIC_RELAXED);
		gm_in_flight_end();
		dawdle(i % 1000);
	}
	__atomic_fetch_sub(&writing, 1, __ATOMIC_RELEASE);
	return unused;
}

static void between_readings(void)
{
	uint64_t first, second, before, after, quiets = 0;
	pthread_t threads[WRITERS];
	unsigned i;

	writing = WRITERS;
	for (i = 0; i < WRITERS; i++)
		pthread_create(&threads[i], NULL, write_device, NULL);
	while (__atomic_load_n(&writing, __ATOMIC_ACQUIRE)) {
		if (!gm_in_flight_none(&first))
			continue;
		before = __atomic_load_n(&device, __ATOMIC_RELAXED);
		dawdle(200);
		after = __atomic_load_n(&device, __ATOMIC_RELAXED);
		if (!gm_in_flight_none(&second) || second != first)
			continue;
		quiets++;
		if (before != after)
			failures++;
	}
	for (i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	EXPECT(gm_in_flight_none(&first) && device == WRITERS * rounds);
	device = 0;
	printf("%llu times nothing came between\n", (unsigned long long)quiets);
}

int main(int argc, char **argv)
{
	rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
	one_thread();
	between_readings(); /* with places of their own: the many leave none */
	many_threads();
	between_readings(); /* without */
	return failures != 0;
}
