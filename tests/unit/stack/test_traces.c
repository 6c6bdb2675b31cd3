/*
 * A slot of traces (traces_next.h) is used by one capture at a time, however many threads share it.
 */
#include "cmocka_all.h"
#include "stack/traces_next.h"

#include <pthread.h>

#define THREADS (2 * GM_TRACES_SLOTS + 2) /* some share, whatever their hashes */
#define ROUNDS	5
#define TIMES	20000

static pthread_barrier_t begun;
static volatile unsigned inside[GM_TRACES_SLOTS]; /* threads that have them; not atomic on purpose */
static unsigned crowded, taken;

static void have(const struct gm_traces *traces)
{
	volatile unsigned *here = &inside[traces - gm_traces_slots];

	if (++*here != 1)
		__atomic_fetch_add(&crowded, 1, __ATOMIC_RELAXED);
	--*here;
}

static void *take_and_give(void *unused)
{
	unsigned times = 0;

	pthread_barrier_wait(&begun);
	for (unsigned i = 0; i < TIMES; i++) {
		struct gm_traces *traces = gm_traces_take(gm_thread_pointer());

		if (!traces)
			continue;
		have(traces);
		gm_traces_give(traces);
		times++;
	}
	__atomic_fetch_add(&taken, times, __ATOMIC_RELAXED);
	return unused;
}

static void test_one_at_a_time(void **state)
{
	pthread_t thread[THREADS];

	(void)state;
	gm_traces_init();
	pthread_barrier_init(&begun, NULL, THREADS);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, take_and_give, NULL), 0);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
	}
	assert_int_equal(crowded, 0);
	assert_true(taken > TIMES);
}

/* A capture in a signal's handler goes without what the one that it interrupted has. */
static void test_not_twice(void **state)
{
	struct gm_traces *traces;

	(void)state;
	gm_traces_init();
	gm_traces_reset();
	traces = gm_traces_take(gm_thread_pointer());
	assert_non_null(traces);
	assert_null(gm_traces_take(gm_thread_pointer()));
	gm_traces_give(traces);
	traces = gm_traces_take(gm_thread_pointer());
	assert_non_null(traces);
	gm_traces_give(traces);
}

/* Long before positions come to their end all that leads to one is dropped, and they begin anew. */
static void test_positions_end(void **state)
{
	const uint64_t end = 1ull << GM_TRACES_POSITION_BITS;
	struct gm_traces *traces;
	uint64_t first;

	(void)state;
	gm_traces_init();
	traces = gm_traces_take(gm_thread_pointer());
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
	gm_traces_give(traces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_not_twice),
		cmocka_unit_test(test_positions_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
