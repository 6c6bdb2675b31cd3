/* The private arena: sizes, reuse, what it maps. */
#include "cmocka_all.h"
#include "stack/arena.h"

#include <stdlib.h>
#include <string.h>

static void test_every_size(void **state)
{
	struct gm_arena arena = {0};

	(void)state;
	for (size_t bytes = 0; bytes < 70000; bytes += bytes < 600 ? 1 : 977) {
		char *first = gm_arena_alloc(&arena, bytes),
		     *second = gm_arena_alloc(&arena, bytes);

		assert_non_null(first);
		assert_non_null(second);
		assert_int_equal((uintptr_t)first % 16, 0);
		assert_true(first + bytes <= second || second + bytes <= first);
		memset(first, 1, bytes);
		memset(second, 2, bytes);
		if (bytes)
			assert_int_equal(first[bytes - 1], 1);
		gm_arena_free(&arena, second, bytes);
		if (bytes <= 32768) /* larger ones are unmapped */
			assert_ptr_equal(gm_arena_alloc(&arena, bytes), second);
		gm_arena_free(&arena, first, bytes);
	}
	gm_arena_reset(&arena);
	assert_int_equal(gm_arena_bytes(&arena), 0);
}

static void test_freed_is_used_again(void **state)
{
	struct gm_arena arena = {0};
	void *piece[1000];
	uint64_t mapped = 0;

	(void)state;
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 1000; i++)
			piece[i] = gm_arena_alloc(&arena, (size_t)(i % 100) * 40 + 1);
		for (int i = 0; i < 1000; i++)
			gm_arena_free(&arena, piece[i], (size_t)(i % 100) * 40 + 1);
		if (round)
			assert_int_equal(gm_arena_bytes(&arena), mapped);
		mapped = gm_arena_bytes(&arena);
	}
	assert_true(mapped < 4 << 20); /* 1000 pieces of 2000 bytes on average */
	gm_arena_reset(&arena);
}

static void test_large_are_given_back(void **state)
{
	struct gm_arena arena = {0};
	void *a = gm_arena_alloc(&arena, 1 << 20), *b = gm_arena_alloc(&arena, 2 << 20);
	void *c = gm_arena_alloc(&arena, 3 << 20);

	(void)state;
	assert_int_equal((uintptr_t)a % 64, 0);
	gm_arena_free(&arena, b, 2 << 20);
	gm_arena_free(&arena, c, 3 << 20);
	assert_int_equal(gm_arena_bytes(&arena), (1 << 20) + 4096);
	gm_arena_free(&arena, a, 1 << 20);
	assert_int_equal(gm_arena_bytes(&arena), 0);
	gm_arena_free(&arena, NULL, 100);
	assert_null(gm_arena_alloc(&arena, SIZE_MAX - 5));
}

/* Against a shadow copy: no two live pieces overlap and none loses its contents. */
static void test_random(void **state)
{
	enum { PIECES = 400 };
	struct gm_arena arena = {0};
	unsigned char *piece[PIECES] = {0};
	size_t bytes[PIECES] = {0};

	(void)state;
	srand(1);
	for (int step = 0; step < 50000; step++) {
		int i = rand() % PIECES;

		for (size_t k = 0; piece[i] && k < bytes[i]; k += 13)
			assert_int_equal(piece[i][k], (unsigned char)i);
		gm_arena_free(&arena, piece[i], bytes[i]);
		bytes[i] = (size_t)(rand() % 8 ? rand() % 500 : rand() % 80000);
		piece[i] = gm_arena_alloc(&arena, bytes[i]);
		assert_non_null(piece[i]);
		memset(piece[i], i, bytes[i]);
	}
	gm_arena_reset(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_size),
		cmocka_unit_test(test_freed_is_used_again),
		cmocka_unit_test(test_large_are_given_back),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
