/*
 * A walk cache is used by one capture at a time, however many threads share it.
 */
#include "cmocka_all.h"
#include "stack/walk_cache.h"

#include <pthread.h>

#define THREADS (2 * GM_WALK_CACHES + 2) /* some share, whatever their hashes */
#define ROUNDS	5
#define TIMES	20000

static pthread_barrier_t begun;
static volatile unsigned inside[GM_WALK_CACHES]; /* threads that have them; not atomic on purpose */
static unsigned crowded, taken;

static void have(const struct gm_walk_cache *cache)
{
	volatile unsigned *here = &inside[cache - gm_walk_caches];

	if (++*here != 1)
		__atomic_fetch_add(&crowded, 1, __ATOMIC_RELAXED);
	--*here;
}

static void *take_and_give(void *unused)
{
	unsigned times = 0;

	pthread_barrier_wait(&begun);
	for (unsigned i = 0; i < TIMES; i++) {
		struct gm_walk_cache *cache = gm_walk_cache_take(gm_thread_pointer());

		if (!cache)
			continue;
		have(cache);
		gm_walk_cache_release(cache);
		times++;
	}
	__atomic_fetch_add(&taken, times, __ATOMIC_RELAXED);
	return unused;
}

static void test_one_at_a_time(void **state)
{
	pthread_t thread[THREADS];

	(void)state;
	gm_walk_cache_init();
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
	struct gm_walk_cache *cache;

	(void)state;
	gm_walk_cache_init();
	gm_walk_cache_reset();
	cache = gm_walk_cache_take(gm_thread_pointer());
	assert_non_null(cache);
	assert_null(gm_walk_cache_take(gm_thread_pointer()));
	gm_walk_cache_release(cache);
	cache = gm_walk_cache_take(gm_thread_pointer());
	assert_non_null(cache);
	gm_walk_cache_release(cache);
}

/* Long before positions come to their end all that leads to one is dropped, and they begin anew. */
static void test_positions_end(void **state)
{
	const uint64_t end = 1ull << GM_POSITION_BITS;
	struct gm_walk_cache *cache;
	uint64_t first;

	(void)state;
	gm_walk_cache_init();
	cache = gm_walk_cache_take(gm_thread_pointer());
	assert_non_null(cache);
	assert_true(gm_walk_cache_renew(cache, 1));
	first = cache->head;
	cache->head = end - 2 * GM_WALK_CACHE_LINES;
	cache->last = cache->head - 1;
	cache->memory->prediction[7].position = cache->last & (end - 1);
	assert_non_null(gm_walk_cache_last(cache));
	assert_true(gm_walk_cache_renew(cache, 1));
	assert_true(cache->head <= first);
	assert_null(gm_walk_cache_last(cache));
	assert_null(gm_walk_cache_at(cache, cache->memory->prediction[7].position));
	gm_walk_cache_release(cache);
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
