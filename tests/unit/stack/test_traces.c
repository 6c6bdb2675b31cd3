/*
 * Who has a thread's traces (traces_next.h): one at a time, whether the thread owns them or shares them
 * with others that came later, and while that changes.
 */
#include "cmocka_all.h"
#include "stack/traces_next.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#define THREADS (2 * GM_TRACES_SLOTS + 2) /* some share, whatever their hashes */
#define ROUNDS	5
#define TIMES	20000
#define CHANGES 1000 /* of an owner */

static pthread_barrier_t begun;
static volatile unsigned inside[GM_TRACES_SLOTS]; /* threads that have them; not atomic on purpose */
static unsigned crowded, owned_times, shared_times;

static void have(const struct gm_traces *traces)
{
	volatile unsigned *here = &inside[traces - gm_traces_slots];

	if (++*here != 1)
		__atomic_fetch_add(&crowded, 1, __ATOMIC_RELAXED);
	--*here;
}

static void *take_and_give(void *data)
{
	unsigned *times = data, by[2] = {0, 0};
	bool owned;

	pthread_barrier_wait(&begun);
	for (unsigned i = 0; i < TIMES; i++) {
		struct gm_traces *traces = gm_traces_take(&owned);

		if (!traces)
			continue;
		have(traces);
		gm_traces_give(traces, owned);
		by[owned]++;
	}
	__atomic_fetch_add(&shared_times, by[false], __ATOMIC_RELAXED);
	__atomic_fetch_add(&owned_times, by[true], __ATOMIC_RELAXED);
	*times = by[false] + by[true];
	return NULL;
}

static void test_one_at_a_time(void **state)
{
	pthread_t thread[THREADS];
	unsigned times[THREADS];

	(void)state;
	gm_traces_init();
	pthread_barrier_init(&begun, NULL, THREADS);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, take_and_give, &times[i]), 0);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		gm_traces_reset(); /* all belong to nobody again */
	}
	assert_int_equal(crowded, 0);
	assert_true(owned_times > 0);
	assert_true(shared_times > 0);
}

/* A thread that shares the first one's traces, among threads that do not. */
static struct {
	sem_t found, end;
	const struct gm_traces *wanted;
	unsigned change; /* whose turn: the owner's while it is even */
	bool is_there, over;
} second;

/* The second comes while the first takes and gives, and takes the ownership away. */
static void *come_second(void *data)
{
	bool is_it = gm_traces_of(gm_thread_pointer()) == second.wanted, owned;

	(void)data;
	second.is_there = is_it;
	sem_post(&second.found);
	for (unsigned change = 1; is_it && !__atomic_load_n(&second.over, __ATOMIC_ACQUIRE);) {
		if (__atomic_load_n(&second.change, __ATOMIC_ACQUIRE) != change) {
			sched_yield();
			continue;
		}
		for (unsigned i = 0; i < 20; i++) {
			struct gm_traces *traces = gm_traces_take(&owned);

			if (!traces)
				continue;
			have(traces);
			gm_traces_give(traces, owned);
		}
		__atomic_store_n(&second.change, change + 1, __ATOMIC_RELEASE);
		change += 2;
	}
	sem_wait(&second.end);
	return NULL;
}

static void be_owner(void)
{
	for (unsigned change = 0; change < 2 * CHANGES; change += 2) {
		unsigned came = 0;

		gm_traces_reset();
		do {
			bool owned;
			struct gm_traces *traces = gm_traces_take(&owned);

			if (traces) {
				have(traces);
				gm_traces_give(traces, owned);
			}
			if (came++ == 10)
				__atomic_store_n(&second.change, change + 1, __ATOMIC_RELEASE);
			if (came % 256 == 0)
				sched_yield();
		} while (__atomic_load_n(&second.change, __ATOMIC_ACQUIRE) != change + 2);
	}
	__atomic_store_n(&second.over, true, __ATOMIC_RELEASE);
}

static void test_owner_changes(void **state)
{
	enum { MOST = 1000 };
	pthread_t thread[MOST];
	unsigned threads = 0;

	(void)state;
	gm_traces_init();
	crowded = 0;
	second.wanted = gm_traces_of(gm_thread_pointer());
	sem_init(&second.found, 0, 0);
	sem_init(&second.end, 0, 0);
	do {
		assert_int_equal(pthread_create(&thread[threads++], NULL, come_second, NULL), 0);
		sem_wait(&second.found);
	} while (!second.is_there && threads < MOST);
	assert_true(second.is_there);
	be_owner();
	for (unsigned i = 0; i < threads; i++)
		sem_post(&second.end);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(crowded, 0);
}

/* A capture in a signal's handler goes without what the one that it interrupted has. */
static void test_not_twice(void **state)
{
	struct gm_traces *traces;
	bool owned, again;

	(void)state;
	gm_traces_init();
	gm_traces_reset();
	traces = gm_traces_take(&owned);
	assert_non_null(traces);
	assert_null(gm_traces_take(&again));
	gm_traces_give(traces, owned);
	traces = gm_traces_take(&owned);
	assert_non_null(traces);
	gm_traces_give(traces, owned);
}

/* Long before positions come to their end all that leads to one is dropped, and they begin anew. */
static void test_positions_end(void **state)
{
	const uint64_t end = 1ull << GM_TRACES_POSITION_BITS;
	struct gm_traces *traces;
	uint64_t first;
	bool owned;

	(void)state;
	gm_traces_init();
	traces = gm_traces_take(&owned);
	assert_non_null(traces);
	assert_true(gm_traces_renew(traces, 1));
	first = traces->head;
	traces->head = end - 2 * GM_TRACES_LINES;
	traces->last = traces->head - 1;
	traces->room->next[7].position = traces->last & (end - 1);
	assert_non_null(gm_traces_last(traces));
	assert_true(gm_traces_renew(traces, 1));
	assert_true(traces->head <= first);
	assert_null(gm_traces_last(traces));
	assert_null(gm_traces_at(traces, traces->room->next[7].position));
	gm_traces_give(traces, owned);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_owner_changes),
		cmocka_unit_test(test_not_twice),
		cmocka_unit_test(test_positions_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
