/*
 * The callback ids of the table's rows: every driver row has one, no two the same, and the libcupti
 * that came with the headers (TOOLKIT_CUPTI) calls each by the row's name.
 */
#include "api/api.h"
#include "cupti/ids.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define DRIVER_DOMAIN 1

static void every_row_once(void **state)
{
	static const char *owner[4096];
	unsigned row, found = 0;

	(void)state;
	assert_int_equal(gm_cupti_functions, GM_FUNCTIONS);
	for (row = 0; row < GM_FUNCTIONS; row++) {
		unsigned id = gm_cupti_ids[row];

		if (gm_rows[row].layer != GM_LAYER_DRIVER || gm_rows[row].role == GM_ROLE_ROUTE) {
			assert_int_equal(id, 0);
			continue;
		}
		if (!id)
			fail_msg("%s has no callback id", gm_rows[row].name);
		if (owner[id])
			fail_msg("%s and %s both have id %u", owner[id], gm_rows[row].name, id);
		owner[id] = gm_rows[row].name;
		found++;
	}
	assert_true(found > 100);
}

/* Written down from cupti_driver_cbid.h: what a mistake in the generator would change. */
static void a_few_by_hand(void **state)
{
	(void)state;
	assert_int_equal(gm_cupti_ids[GM_FN_cuMemAlloc_v2], 243);
	assert_int_equal(gm_cupti_ids[GM_FN_cuMemFree_v2], 245);
	assert_int_equal(gm_cupti_ids[GM_FN_cuMemAlloc], 29);
	assert_int_equal(gm_cupti_ids[GM_FN_cuCtxSynchronize_v2], 800);
}

static void as_libcupti_names_them(void **state)
{
	const char *path = getenv("TOOLKIT_CUPTI");
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*get_name)(int, uint32_t, const char **);
	const char *name;
	unsigned row;

	(void)state;
	if (!library)
		skip();
	get_name = (int (*)(int, uint32_t, const char **))dlsym(library, "cuptiGetCallbackName");
	assert_non_null(get_name);
	for (row = 0; row < GM_FUNCTIONS; row++) {
		if (!gm_cupti_ids[row])
			continue;
		assert_int_equal(get_name(DRIVER_DOMAIN, gm_cupti_ids[row], &name), 0);
		assert_string_equal(name, gm_rows[row].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_once),
		cmocka_unit_test(a_few_by_hand),
		cmocka_unit_test(as_libcupti_names_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
