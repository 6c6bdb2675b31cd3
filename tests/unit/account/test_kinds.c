/*
 * The table of kinds and the driver's sizes, against values taken from docs/contract.md (section 4)
 * and docs/evidence/facts.md (granularity) and written down here once more.
 */
#include "../stack/cmocka_all.h"
#include "account/sizes.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)

static const struct expectation {
	unsigned kind;
	bool owned, usage, host, pool, slab;
} kinds[] = {
	{GM_KIND_NONE, false, false, false, false, false},
	{GM_KIND_DEVICE, true, true, false, false, true},
	{GM_KIND_MANAGED, true, true, false, false, false},
	{GM_KIND_ARRAY, true, true, false, false, false},
	{GM_KIND_ASYNC, true, true, false, true, false},
	{GM_KIND_VMM, true, true, false, false, false},
	{GM_KIND_GRAPH, true, true, false, true, false},
	{GM_KIND_PINNED, true, true, true, false, false},
	{GM_KIND_REGISTERED, false, true, true, false, false},
	{GM_KIND_IMPORTED, false, true, false, false, false},
	{GM_KINDS, false, false, false, false, false}, /* as a damaged file can have it */
	{UINT8_MAX, false, false, false, false, false},
};

static void attributes(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const struct expectation *expected = &kinds[i];
		struct gm_alloc_record alloc = {
			.kind = (uint8_t)expected->kind, .owner = 3, .bytes = MIB};

		assert_int_equal(gm_kind_owned(expected->kind), expected->owned);
		assert_int_equal(gm_kind_on_host(expected->kind), expected->host);
		assert_int_equal(gm_in_usage(GM_LEVEL_DRIVER, expected->kind), expected->usage);
		assert_int_equal(gm_in_level(GM_LEVEL_DRIVER, expected->kind), expected->owned);
		assert_int_equal(gm_in_pool(&alloc), expected->pool);
		assert_int_equal(gm_in_slab(&alloc), expected->slab);
		alloc.owner = GM_NONE;
		alloc.bytes++;
		assert_false(gm_in_pool(&alloc));
		assert_false(gm_in_slab(&alloc));
	}
}

/* Blocks of frameworks are in their level whatever their kind, and in no usage record. */
static void blocks(void **unused)
{
	const struct gm_alloc_record block = {
		.kind = GM_KIND_DEVICE, .level = GM_LEVEL_TORCH, .bytes = 512};

	(void)unused;
	for (unsigned kind = 0; kind < GM_KINDS; kind++) {
		assert_true(gm_in_level(GM_LEVEL_TORCH, kind));
		assert_true(gm_in_level(GM_LEVEL_CUSTOM, kind));
		assert_false(gm_in_usage(GM_LEVEL_TORCH, kind));
		assert_int_equal(gm_driver_bytes(GM_LEVEL_TORCH, kind, 5 * MIB), 0);
	}
	assert_false(gm_in_slab(&block));
}

static const struct size {
	unsigned kind;
	uint64_t bytes, held_bytes;
} sizes[] = {
	{GM_KIND_DEVICE, 1, 512},
	{GM_KIND_DEVICE, 512, 512},
	{GM_KIND_DEVICE, 513, KIB},
	{GM_KIND_DEVICE, MIB - 1, MIB},
	{GM_KIND_DEVICE, MIB, MIB},
	{GM_KIND_DEVICE, MIB + 1, 2 * MIB},
	{GM_KIND_DEVICE, 2 * MIB, 2 * MIB},
	{GM_KIND_DEVICE, 2 * MIB + 1, 4 * MIB},
	{GM_KIND_ARRAY, MIB, MIB},
	{GM_KIND_ARRAY, 3 * MIB, 4 * MIB},
	{GM_KIND_ASYNC, MIB + 1, MIB + 512},
	{GM_KIND_GRAPH, 5, 512},
	{GM_KIND_VMM, 1, 2 * MIB},
	{GM_KIND_VMM, 2 * MIB + 1, 4 * MIB},
	{GM_KIND_PINNED, 1, 4 * KIB},
	{GM_KIND_PINNED, 4 * KIB + 1, 8 * KIB},
	{GM_KIND_MANAGED, 7 * MIB, 0},
	{GM_KIND_REGISTERED, 7 * MIB, 0},
	{GM_KIND_IMPORTED, 7 * MIB, 0},
	{GM_KIND_NONE, 7 * MIB, 0},
	{GM_KINDS, 7 * MIB, 0},
};

static void what_the_driver_holds(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		assert_int_equal(gm_driver_bytes(GM_LEVEL_DRIVER, sizes[i].kind, sizes[i].bytes),
				 sizes[i].held_bytes);
	assert_int_equal(gm_slab_of(0x7f0000200000), 0x7f0000200000);
	assert_int_equal(gm_slab_of(0x7f00003fffff), 0x7f0000200000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes),
		cmocka_unit_test(blocks),
		cmocka_unit_test(what_the_driver_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
