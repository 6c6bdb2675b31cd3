/* The map with one writer and lock-free readers, and its hash. */
#include "cmocka_all.h"
#include "stack/map.h"

#include <pthread.h>
#include <string.h>

static uint64_t only(const struct gm_map *map, uint64_t hash)
{
	struct gm_map_cursor cursor = gm_map_find(map, hash);

	return gm_map_next(&cursor);
}

static void test_finds_what_was_added(void **state)
{
	struct gm_arena arena = {0};
	struct gm_map map = {0};

	(void)state;
	assert_int_equal(only(&map, 5), 0);
	for (uint64_t i = 0; i < 100000; i++)
		assert_true(gm_map_add(&map, &arena, gm_hash_numbers(i, 7, i), i + 2));
	for (uint64_t i = 0; i < 100000; i++)
		assert_int_equal(only(&map, gm_hash_numbers(i, 7, i)), i + 2);
	assert_int_equal(only(&map, gm_hash_numbers(1, 8, 1)), 0);
	gm_arena_reset(&arena);
}

static void test_equal_hashes(void **state)
{
	struct gm_arena arena = {0};
	struct gm_map map = {0};
	struct gm_map_cursor cursor;
	uint64_t value, sum = 0;

	(void)state;
	for (uint64_t i = 2; i < 100; i++) {
		gm_map_add(&map, &arena, 42, i);
		gm_map_add(&map, &arena, 42 + i * 256, i); /* same slot, another hash */
	}
	cursor = gm_map_find(&map, 42);
	while ((value = gm_map_next(&cursor)))
		sum += value;
	assert_int_equal(sum, (99 * 100) / 2 - 1);
	gm_arena_reset(&arena);
}

/* Readers see each value or not yet, never anything else, while the map grows under them. */
struct race {
	struct gm_map map;
	uint64_t added;
	bool stop;
	uint64_t wrong;
};

static void *read_on(void *data)
{
	struct race *race = data;

	while (!__atomic_load_n(&race->stop, __ATOMIC_ACQUIRE)) {
		uint64_t added = __atomic_load_n(&race->added, __ATOMIC_ACQUIRE);

		for (uint64_t i = added > 500 ? added - 500 : 0; i < added + 5; i++) {
			uint64_t found = only(&race->map, gm_hash_numbers(i, 1, 1));

			if (found != i + 2 && !(found == 0 && i >= added))
				__atomic_fetch_add(&race->wrong, 1, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

static void test_readers_while_it_grows(void **state)
{
	struct gm_arena arena = {0};
	struct race race = {0};
	pthread_t reader[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&reader[i], NULL, read_on, &race), 0);
	for (uint64_t i = 0; i < 200000; i++) {
		gm_map_add(&race.map, &arena, gm_hash_numbers(i, 1, 1), i + 2);
		__atomic_store_n(&race.added, i + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&race.stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 3; i++)
		pthread_join(reader[i], NULL);
	assert_int_equal(race.wrong, 0);
	gm_arena_reset(&arena);
}

static void test_hash_sees_every_bit(void **state)
{
	unsigned char data[70] = {0};

	(void)state;
	for (size_t bytes = 1; bytes <= sizeof(data); bytes++) {
		uint64_t hash = gm_hash(data, bytes, 3);

		assert_int_not_equal(hash, gm_hash(data, bytes - 1, 3));
		assert_int_not_equal(hash, gm_hash(data, bytes, 4));
		for (size_t bit = 0; bit < bytes * 8; bit++) {
			data[bit / 8] ^= 1 << bit % 8;
			assert_int_not_equal(hash, gm_hash(data, bytes, 3));
			data[bit / 8] ^= 1 << bit % 8;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_what_was_added),
		cmocka_unit_test(test_equal_hashes),
		cmocka_unit_test(test_readers_while_it_grows),
		cmocka_unit_test(test_hash_sees_every_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
