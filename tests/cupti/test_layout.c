/*
 * The decoders' view of CUPTI's parameter structures against NVIDIA's own, row by row.
 */
#include "layout.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <stdint.h>
#include <cmocka.h>

static unsigned rows(const struct layout *layout)
{
	unsigned count = 0;

	while (layout[count].function)
		count++;
	return count;
}

static void same_rows(void **state)
{
	(void)state;
	assert_true(rows(layout_of_table) > 100);
	assert_int_equal(rows(layout_of_table), rows(layout_of_cuda));
}

static void same_layouts(void **state)
{
	const struct layout *ours = layout_of_table, *theirs = layout_of_cuda;
	unsigned i;

	(void)state;
	for (; ours->function; ours++, theirs++) {
		assert_string_equal(ours->function, theirs->function);
		if (ours->bytes != theirs->bytes)
			fail_msg("%s: %zu bytes, CUPTI's structure has %zu", ours->function,
				 ours->bytes, theirs->bytes);
		for (i = 0; i < MOST_FIELDS; i++)
			if (ours->offset[i] != theirs->offset[i] ||
			    ours->width[i] != theirs->width[i])
				fail_msg("%s: parameter %u is %zu bytes at %zu, CUPTI's %zu at %zu",
					 ours->function, i, ours->width[i], ours->offset[i],
					 theirs->width[i], theirs->offset[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(same_rows),
					   cmocka_unit_test(same_layouts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
