/*
 * What names a stack, which frames leave it, what rules say of frames, and rules of the user's.
 */
#include "file.h"
#include "report/judge/judge.h"
#include "report/stacks/labels.h"
#include "report/load/load.h"
#include "report/stacks/rules.h"
#include "report/doc/options.h"
#include "report/open/open.h"
#include "report/stacks/entry_frames.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MIB	      (1ull << 20)
#define SITE_PACKAGES "/home/u/venv/lib/python3.12/site-packages/"

static const char *const path = test_path;

static const struct gm_options options = {
	.device = -1, .kind = -1, .level = -1, .warmup = 2, .top = 20};

static struct gm_frame native(const char *function, const char *module)
{
	struct gm_frame frame = {.function = function, .module = module, .offset = 0x1234};

	gm_rules_apply(&frame);
	return frame;
}

static struct gm_frame python(const char *function, const char *file, unsigned line)
{
	struct gm_frame frame = {.python = true, .function = function, .file = file, .line = line};

	gm_rules_apply(&frame);
	return frame;
}

/* The stack of these frames. */
static struct gm_stack stack_of(const struct gm_frame *frames, unsigned count)
{
	static struct gm_frame_list list;
	static uint32_t numbers[16];

	list = (struct gm_frame_list){(struct gm_frame *)frames, count};
	for (unsigned i = 0; i < count; i++)
		numbers[i] = gm_frame_number(0, i);
	return (struct gm_stack){.frames = numbers, .lists = &list, .count = count};
}

static unsigned entries(const struct gm_frame *frames, unsigned count)
{
	const struct gm_stack stack = stack_of(frames, count);

	return gm_entry_frames(&stack);
}

/* The stacks of a program and of a library with a static cudart, as an H200's run recorded them. */
static void entry_points_leave_the_stack(void **state)
{
	const char *program = "/home/u/program", *runtime = "/x/runtime.cpython-312.so";
	const struct gm_frame in_program[] = {
		native("libcudart_static_5382377d", program),
		native("libcudart_static_f74e2f2b", program), native("cudaMalloc", program),
		native("leak_here", program), native("main", program)};
	const struct gm_frame nameless[] = {native(NULL, runtime), native(NULL, runtime),
					    native("cudaMallocAsync_ptsz", runtime),
					    native("alloc", runtime)};
	const struct gm_frame wrapper[] = {
		native("cudaError cudaMalloc<float>(float**, unsigned long)", program),
		native("main", program)};
	const struct gm_frame cublas[] = {native(NULL, "/x/libcublas.so.13"),
					  native("cublasCreate_v2", "/x/libcublas.so.13"),
					  native("main", program)};
	const struct gm_frame driver[] = {native(NULL, "/usr/lib/libcudart.so.13"),
					  native("cudaMalloc", "/usr/lib/libcudart.so.13"),
					  native("cudaMallocLike(int)", program)};
	const struct gm_frame only[] = {native("cudaMalloc", program)};
	const struct gm_frame not_in_the_table[] = {native("libcudart_static_5382377d", program),
						    native("cudaSetDevice", program),
						    native("makes_a_context", program)};
	const struct gm_frame own_name[] = {native("cudaSetUp", program), native("main", program)};
	const struct gm_frame called_back[] = {native("user", program),
					       native("cudaLaunchHostFunc", program),
					       native("main", program)};

	(void)state;
	assert_int_equal(entries(in_program, 5), 3);
	assert_int_equal(entries(nameless, 4), 3);
	assert_int_equal(entries(wrapper, 2), 1);
	assert_int_equal(entries(cublas, 3), 0);
	assert_int_equal(entries(driver, 3), 2);
	assert_int_equal(entries(only, 1), 0);
	assert_int_equal(entries(not_in_the_table, 3), 2);
	assert_int_equal(entries(own_name, 2), 0);
	assert_int_equal(entries(called_back, 3), 0);
}

static const struct gm_frame *named(struct gm_frame *frames, unsigned count)
{
	struct gm_stack stack = stack_of(frames, count);

	return gm_stack_label_frame(&stack);
}

static void own_code_names_a_stack(void **state)
{
	struct gm_frame torch[] = {
		native("at::native::empty_cuda", "/x/libtorch_cuda.so"),
		python("Linear.forward", SITE_PACKAGES "torch/nn/modules/linear.py", 9),
		python("Net.forward", "/home/u/net.py", 12),
		python("<module>", "/home/u/net.py", 40)};
	struct gm_frame installed[] = {native("f", "/home/u/libuser.so"),
				       python("serve", SITE_PACKAGES "vllm/serve.py", 3),
				       python("run", "/usr/lib/python3.11/runpy.py", 8)};
	struct gm_frame c[] = {
		native(NULL, "/x/libcublas.so.13"), native("cublasCreate_v2", "/x/libcublas.so.13"),
		native("std::vector<int>::reserve", "/home/u/prog"),
		native("start", "/home/u/prog"), native("__libc_start_main", "/lib/libc.so.6")};
	struct gm_frame stripped[] = {
		native("operator new(unsigned long)", "/usr/lib/libstdc++.so.6"),
		native(NULL, "/home/u/stripped"), native(NULL, "/lib/x86_64-linux-gnu/libc.so.6")};

	(void)state;
	assert_ptr_equal(named(torch, 4), &torch[2]);
	assert_ptr_equal(named(installed, 3), &installed[1]);
	assert_ptr_equal(named(c, 5), &c[3]);
	assert_ptr_equal(named(stripped, 3), &stripped[1]);
	assert_null(named(NULL, 0));
}

static uint32_t site(struct test_file *file, const char *a, const char *b, const char *c)
{
	const char *const frames[] = {a, b, c, NULL};

	return test_add_site(file, test_stack(file, frames), 0, GM_KIND_DEVICE, 0, 1, 0, MIB);
}

static void equal_labels_are_told_apart(void **state)
{
	uint32_t first, second, third, fourth, alone;
	struct test_file file;
	struct gm_doc *doc;
	char error[512];

	(void)state;
	test_begin(&file);
	first = site(&file, "T.__init__ a.py 19", "relu a.py 30", "forward a.py 40");
	second = site(&file, "T.__init__ a.py 19", "relu a.py 30", "forward a.py 41");
	third = site(&file, "T.__init__ a.py 19", "make " SITE_PACKAGES "p.py 5", "load a.py 50");
	fourth = site(&file, "T.__init__ a.py 19", "<module> a.py 60", NULL);
	alone = site(&file, "loss a.py 70", "step a.py 80", NULL);
	test_sum(&file);
	assert_int_equal(test_write(&file, path), 0);
	test_end(&file);
	doc = gm_doc_open(path, &options, error, sizeof(error));
	assert_non_null(doc);
	assert_string_equal(gm_stack_label(doc, doc->sites[first].stack),
			    "T.__init__ (a.py:19) from relu (a.py:30) from forward (a.py:40)");
	assert_string_equal(gm_stack_label(doc, doc->sites[second].stack),
			    "T.__init__ (a.py:19) from relu (a.py:30) from forward (a.py:41)");
	assert_string_equal(gm_stack_label(doc, doc->sites[third].stack),
			    "T.__init__ (a.py:19) from load (a.py:50)");
	assert_string_equal(gm_stack_label(doc, doc->sites[fourth].stack),
			    "T.__init__ (a.py:19) from <module> (a.py:60)");
	assert_string_equal(gm_stack_label(doc, doc->sites[alone].stack), "loss (a.py:70)");
	assert_string_equal(gm_stack_label(doc, NULL), "an unknown place (no stack)");
	gm_doc_close(doc);
}

static void write_text(const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Runs last: rules of files stay. */
static void rules_of_the_user(void **state)
{
	static const struct {
		const char *text, *sentence;
	} wrong[] = {
		{"# fine\n\nplumbing function a\ncategry x module y\n",
		 ":4 is no rule: it does not begin with plumbing, installed, toolkit, framework, "
		 "cache, opaque, category or phase"},
		{"category\n", ":1 is no rule: it gives no name, or one that is too long"},
		{"phase warm-up line x\n",
		 ":1 is no rule: what is to be matched is not module, path, function or file"},
		{"plumbing\tmodule \n", ":1 is no rule: the pattern is missing"},
	};
	struct gm_frame frame = python("Net.forward", "/home/u/net.py", 12);
	char error[512];

	(void)state;
	assert_string_equal(gm_rule_name(frame.category_rule), "activations");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		write_text(wrong[i].text);
		assert_false(gm_rules_extend(path, error, sizeof(error)));
		assert_memory_equal(error, path, strlen(path));
		assert_string_equal(error + strlen(path), wrong[i].sentence);
	}
	write_text("category kv_cache function *.forward \r\ninstalled file /home/u/vendor/*\n");
	assert_true(gm_rules_extend(path, error, sizeof(error)));
	frame = python("Net.forward", "/home/u/vendor/net.py", 12);
	assert_string_equal(gm_rule_name(frame.category_rule), "kv cache");
	assert_string_equal(gm_rule_name(frame.phase_rule), "forward");
	assert_true(frame.installed);
	assert_false(gm_rules_extend("/nowhere/rules", error, sizeof(error)));
	assert_string_equal(error, "/nowhere/rules cannot be read: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entry_points_leave_the_stack),
		cmocka_unit_test(own_code_names_a_stack),
		cmocka_unit_test(equal_labels_are_told_apart),
		cmocka_unit_test(rules_of_the_user),
	};

	return cmocka_run_group_tests(tests, test_path_make, test_path_remove);
}
