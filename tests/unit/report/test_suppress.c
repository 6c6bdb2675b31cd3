/*
 * Patterns of suppressions, by LeakSanitizer's rules.
 */
#include "report/suppress.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void patterns(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{"foo", "foo", true},
		{"foo", "a foo b", true},
		{"foo", "fo", false},
		{"^foo", "foobar", true},
		{"^foo", "a foo", false},
		{"foo$", "a foo", true},
		{"foo$", "foo a", false},
		{"^foo$", "foo", true},
		{"^foo$", "foofoo", false},
		{"a*c", "xxabbcyy", true},
		{"a*c", "xxcba", false},
		{"^a*c$", "abc", true},
		{"^a*c$", "abcd", false},
		{"^a*c$", "abcc", true},
		{"a*b*c", "a1b2c", true},
		{"a**c", "abc", true},
		{"*", "", true},
		{"*foo*", "xfoox", true},
		{"foo*", "foo", true},
		{"libcublas.so*", "/usr/lib/libcublas.so.13", true},
		{"std::vector<int*>", "x std::vector<int*> y", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (gm_suppression_matches(cases[i].pattern, cases[i].text) != cases[i].matches)
			fail_msg("\"%s\" and \"%s\" should%s match", cases[i].pattern,
				 cases[i].text, cases[i].matches ? "" : " not");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(patterns)};

	return cmocka_run_group_tests_name("suppress", tests, NULL, NULL);
}
