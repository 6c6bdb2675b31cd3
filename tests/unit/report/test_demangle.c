/*
 * Names as compilers mangle them. The C++ and legacy names are standard ones; the v0 names are
 * those of RFC 2603.
 */
#include "report/symbols/symbolize.h"
#include "report/symbols/demangle.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void names(void **state)
{
	static const struct {
		const char *mangled, *name;
		bool v0;
	} rows[] = {
		{"main", "main", false},
		{"_ZN2at6native10empty_cudaEl", "at::native::empty_cuda(long)", false},
		{"_ZNSt6vectorIiSaIiEE4pushEOi",
		 "std::vector<int, std::allocator<int> >::push(int&&)", false},
		{"_Znot_mangled", "_Znot_mangled", false},
		{"_Rnot_mangled", "_Rnot_mangled", false},
		{"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt",
		 false},
		{"_RNvC7mycrate7example", "mycrate::example", true},
		{"_RNvCs1234_7mycrate7example", "mycrate::example", true},
		{"_RNvXCs6xxl1lAjzDf_1aINtB2_4PoolyENtB2_4Grow4grow",
		 "<a::Pool<u64> as a::Grow>::grow", true},
	};
	struct gm_zone zone = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
#ifndef GM_HAVE_LIBIBERTY
		if (rows[i].v0)
			continue;
#endif
		assert_string_equal(gm_demangle(&zone, rows[i].mangled), rows[i].name);
	}
	assert_null(gm_demangle(&zone, NULL));
	gm_zone_free(&zone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
