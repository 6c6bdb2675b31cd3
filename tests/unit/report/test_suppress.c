/*
 * Patterns of suppressions, by LeakSanitizer's rules; and what the shipped list can hide: each of
 * its libraries with memory of its own, and in the stacks of other people's.
 */
#include "file.h"
#include "report/doc/doc.h"
#include "report/judge/suppress.h"
#include "report/doc/options.h"
#include "report/open/open.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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

static const char *const path = test_path;

/* What one site is: the objects of its stack, innermost first, below a script's line. */
struct told {
	const char *modules[4];
	unsigned level, live;
};

/* The suppression that holds for it, NULL; `*verdict` is the site's. */
static const char *suppressed(const struct told *told, enum gm_verdict *verdict)
{
	static char pattern[200];
	const struct gm_options options = {
		.device = -1, .kind = -1, .level = -1, .warmup = 2, .top = 20};
	struct gm_stack_record stack = {0};
	struct test_file file;
	struct gm_doc *doc;
	char error[512];
	uint32_t number;

	test_begin(&file);
	stack.first = file.tables[GM_TABLE_STACK_FRAMES].count;
	for (; stack.frames < 4 && told->modules[stack.frames]; stack.frames++) {
		number = test_native_frame(&file, told->modules[stack.frames], 64);
		TEST_ADD(&file, GM_TABLE_STACK_FRAMES, &number);
	}
	number = test_python_frame(&file, "main", "/home/me/train.py", 3);
	TEST_ADD(&file, GM_TABLE_STACK_FRAMES, &number);
	stack.frames++;
	test_add_site(&file, TEST_ADD(&file, GM_TABLE_STACKS, &stack), told->level, GM_KIND_DEVICE,
		      0, told->live, 0, 4096);
	test_sum(&file);
	assert_int_equal(test_write(&file, path), 0);
	test_end(&file);
	doc = gm_doc_open(path, &options, error, sizeof(error));
	assert_non_null(doc);
	*verdict = doc->sites[0].verdict;
	snprintf(pattern, sizeof(pattern), "%s",
		 doc->sites[0].suppressed ? doc->sites[0].suppressed : "");
	gm_doc_close(doc);
	return *pattern ? pattern : NULL;
}

static void is_not_hidden(const char *what, struct told told)
{
	enum gm_verdict verdict;
	const char *by = suppressed(&told, &verdict);

	if (by)
		fail_msg("%s is hidden by %s", what, by);
	assert_true(verdict >= GM_HELD || told.level == GM_LEVEL_DRIVER);
}

/* One line of the list that names a library, its file as `library`. */
static void try_library(const char *pattern, const char *library)
{
	struct told own = {
		{"/usr/lib/libcudart.so.13", library, "/home/me/prog"}, GM_LEVEL_DRIVER, 1};
	enum gm_verdict verdict;
	const char *by = suppressed(&own, &verdict);
	char folder[400];

	/* pools of frameworks are cached memory already, and no leak */
	if (verdict >= GM_HELD)
		assert_string_equal(by ? by : "nothing", pattern);
	own.live = 40;
	is_not_hidden("a library's memory that grows", own);
	own.live = 1;
	own.level = GM_LEVEL_TORCH;
	is_not_hidden("a framework's block", own);
	own.level = GM_LEVEL_CUSTOM;
	is_not_hidden("a block of the program's own pool", own);
	is_not_hidden("what the program takes in a library's callback",
		      (struct told){{"/usr/lib/libcudart.so.13", "/home/me/libmine.so", library,
				     "/home/me/prog"}, GM_LEVEL_DRIVER, 1});
	is_not_hidden("what a program's Python line takes through ctypes",
		      (struct told){{"/usr/lib/libcudart.so.13", "/usr/lib/libffi.so.8"},
				    GM_LEVEL_DRIVER,
				    1});
	snprintf(folder, sizeof(folder), "/home/me%s-tests/prog", pattern);
	is_not_hidden("a program in a folder of a library's name",
		      (struct told){{"/usr/lib/libcudart.so.13", folder}, GM_LEVEL_DRIVER, 1});
}

static void shipped_lines_hide_nothing_else(void **state)
{
	FILE *list = fopen(SUPPRESSIONS, "re");
	unsigned libraries = 0;
	char line[300], library[400];

	(void)state;
	assert_non_null(list);
	while (fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "leak:/", 6) != 0)
			continue;
		snprintf(library, sizeof(library), "/opt%s%s", line + 5,
			 line[strlen(line) - 1] == '.' ? "cpython-311-x86_64-linux-gnu.so" : ".9");
		try_library(line + 5, library);
		libraries++;
	}
	fclose(list);
	assert_true(libraries > 15);
}

/* PyTorch's tensors where its allocator does not cache: the driver's memory, straight from c10. */
static void tensors_without_caching(void **state)
{
	(void)state;
	is_not_hidden("a tensor",
		      (struct told){{"/usr/lib/libcudart.so.13", "/opt/torch/lib/libc10_cuda.so",
				     "/opt/torch/lib/libtorch_cuda.so"}, GM_LEVEL_DRIVER, 1});
	is_not_hidden("a tensor's block", (struct told){{"/opt/torch/lib/libc10_cuda.so",
							 "/opt/torch/lib/libtorch_cuda.so"},
							GM_LEVEL_TORCH,
							1});
	is_not_hidden(
		"what an allocator plugged into PyTorch takes",
		(struct told){{"/usr/lib/libcudart.so.13", "/home/me/liballoc.so",
			       "/opt/torch/lib/libc10_cuda.so", "/opt/torch/lib/libtorch_cuda.so"},
			      GM_LEVEL_DRIVER,
			      1});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns),
		cmocka_unit_test(shipped_lines_hide_nothing_else),
		cmocka_unit_test(tensors_without_caching),
	};

	return cmocka_run_group_tests_name("suppress", tests, test_path_make, test_path_remove);
}
