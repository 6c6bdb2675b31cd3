/*
 * Interning: equal stacks are one record, different ones never, whatever happens meanwhile: growth,
 * threads, a full file, a fork, libraries that come and go at the same address.
 */
#include "cmocka_all.h"
#include "probe.h"
#include "stack/elf_symbols.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BARRIER() __asm__ volatile("" ::: "memory")

/* Addresses in this program, so that a module covers them. */
static uintptr_t address(unsigned n)
{
	return (uintptr_t)address + n;
}

static struct gm_raw_stack made(unsigned natives, unsigned seed)
{
	struct gm_raw_stack raw = {.natives = (uint16_t)natives};

	for (unsigned i = 0; i < natives; i++)
		raw.pc[i] = address((seed >> (i % 3 * 4) & 15) + i * 16);
	return raw;
}

static void test_equal_and_different(void **state)
{
	bool used[7 * 16] = {false};
	uint32_t number[3000];
	unsigned addresses = 0;

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	for (unsigned i = 0; i < 3000; i++) {
		struct gm_raw_stack raw = made(3 + i % 2 * 4, i);

		number[i] = gm_stack_intern(&raw, NULL);
		assert_int_equal(number[i], i);
		for (unsigned k = 0; k < raw.natives; k++)
			used[raw.pc[k] - address(0)] = true;
	}
	for (unsigned i = 0; i < sizeof(used); i++)
		addresses += used[i];
	assert_int_equal(store_double_count(GM_TABLE_STACKS), 3000);
	assert_int_equal(store_double_count(GM_TABLE_STACK_FRAMES), 1500 * 3 + 1500 * 7);
	assert_int_equal(store_double_count(GM_TABLE_FRAMES), addresses);
	assert_int_equal(store_double_count(GM_TABLE_MODULES), 1);
	for (unsigned i = 0; i < 3000; i++) {
		struct gm_raw_stack raw = made(3 + i % 2 * 4, i);

		assert_int_equal(gm_stack_intern(&raw, NULL), number[i]);
	}
	assert_int_equal(store_double_count(GM_TABLE_STACKS), 3000);
}

static void test_contents(void **state)
{
	struct gm_raw_stack raw = made(5, 0x123);
	uint32_t stack, module_number;
	const struct gm_stack_record *record;
	const struct gm_module_record *module;
	struct gm_object self;
	char path[4096];
	unsigned bytes;

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	raw.flags = GM_STACK_TRUNCATED;
	stack = gm_stack_intern(&raw, &module_number);
	record = gm_store_record(GM_TABLE_STACKS, stack);
	assert_int_equal(record->frames, 5);
	assert_int_equal(record->flags, GM_STACK_TRUNCATED);
	assert_true(gm_object_at((uintptr_t)test_contents, &self));
	module = gm_store_record(GM_TABLE_MODULES, module_number);
	assert_int_equal(module->bias, self.base);
	assert_int_equal(module->start, self.start);
	assert_int_equal(module->end, self.end);
	assert_int_equal(module->unloaded, 0);
	path[readlink("/proc/self/exe", path, sizeof(path) - 1)] = '\0';
	assert_string_equal(store_double_string(module->path_string), path);
	assert_memory_equal(module->build_id, gm_object_build_id(&self, &bytes), 20);
	assert_int_equal(module->build_id_bytes, 20);
	for (unsigned i = 0; i < 5; i++) {
		const uint32_t *frame = gm_store_record(GM_TABLE_STACK_FRAMES, record->first + i);
		const struct gm_frame_record *native = gm_store_record(GM_TABLE_FRAMES, *frame);

		assert_int_equal(native->kind, GM_FRAME_NATIVE);
		assert_int_equal(native->native.module, module_number);
		assert_int_equal(native->native.offset, raw.pc[i] - self.base);
	}
	/* the same frames with other flags are another stack */
	raw.flags = 0;
	assert_int_not_equal(gm_stack_intern(&raw, NULL), stack);
}

static void test_python_frames_count(void **state)
{
	struct gm_raw_stack raw = made(2, 0);
	uint32_t one, two;

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	raw.pythons = 2;
	raw.python[0] = 7;
	raw.python[1] = 8;
	one = gm_stack_intern(&raw, NULL);
	raw.python[1] = 9;
	two = gm_stack_intern(&raw, NULL);
	assert_int_not_equal(one, two);
	raw.python[1] = 8;
	assert_int_equal(gm_stack_intern(&raw, NULL), one);
	assert_int_equal(((struct gm_stack_record *)gm_store_record(GM_TABLE_STACKS, one))->frames,
			 4);
}

static void test_empty_and_full(void **state)
{
	struct gm_raw_stack raw = {0};
	uint32_t module = 5;

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	assert_int_equal(gm_stack_intern(&raw, &module), GM_NONE);
	assert_int_equal(module, GM_NONE);
	raw = made(4, 1);
	store_double_fill(true);
	assert_int_equal(gm_stack_intern(&raw, &module), GM_NONE);
	assert_true(gm_file->dropped_records > 0);
	store_double_fill(false);
	assert_int_equal(gm_stack_intern(&raw, &module), 0); /* room again: recorded after all */
	assert_int_equal(gm_stack_intern(&raw, NULL), 0);
}

static void test_incomplete(void **state)
{
	struct gm_raw_stack raw = made(3, 1);
	void *jit = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct gm_stack_record *record;
	const struct gm_frame_record *frame;

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	raw.pc[2] = (uintptr_t)jit + 8; /* ends in code of no library: the unwinder gave up there */
	record = gm_store_record(GM_TABLE_STACKS, gm_stack_intern(&raw, NULL));
	assert_int_equal(record->flags, GM_STACK_INCOMPLETE);
	frame = gm_store_record(GM_TABLE_FRAMES, *(uint32_t *)gm_store_record(GM_TABLE_STACK_FRAMES,
									      record->first + 2));
	assert_int_equal(frame->native.module, GM_NONE);
	assert_int_equal(frame->native.offset, (uintptr_t)jit + 8);
	raw.flags = GM_STACK_TRUNCATED; /* of a cut stack nothing is known */
	record = gm_store_record(GM_TABLE_STACKS, gm_stack_intern(&raw, NULL));
	assert_int_equal(record->flags, GM_STACK_TRUNCATED);
	munmap(jit, 4096);
}

struct shared {
	pthread_barrier_t barrier;
	uint32_t number[8][2000];
};

struct one {
	struct shared *shared;
	int thread;
};

static void *intern_all(void *data)
{
	struct one *one = data;

	pthread_barrier_wait(&one->shared->barrier);
	for (unsigned i = 0; i < 2000; i++) {
		unsigned n = one->thread & 1 ? i : 1999 - i;
		struct gm_raw_stack raw = made(5, n);

		one->shared->number[one->thread][n] = gm_stack_intern(&raw, NULL);
	}
	return NULL;
}

static void test_threads(void **state)
{
	static struct shared shared;
	struct one one[8];
	pthread_t thread[8];

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	pthread_barrier_init(&shared.barrier, NULL, 8);
	for (int i = 0; i < 8; i++) {
		one[i] = (struct one){&shared, i};
		assert_int_equal(pthread_create(&thread[i], NULL, intern_all, &one[i]), 0);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(store_double_count(GM_TABLE_STACKS), 2000);
	for (int i = 1; i < 8; i++)
		assert_memory_equal(shared.number[i], shared.number[0], sizeof(shared.number[0]));
}

static void test_fork(void **state)
{
	struct gm_raw_stack raw = made(5, 77);
	int status;
	pid_t pid;

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	for (unsigned i = 0; i < 100; i++) {
		raw = made(5, i);
		gm_stack_intern(&raw, NULL);
	}
	pid = fork();
	if (!pid) {
		probe_start(GM_STACKS_FULL, 64);
		_exit(gm_stack_intern(&raw, NULL) != 0 || store_double_count(GM_TABLE_STACKS) != 1);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(gm_stack_intern(&raw, NULL), 99);
}

/* ---- libraries that come and go ---- */

typedef uint32_t plugin_fn(uint32_t (*take)(unsigned));

static void *load(const char *variable, const char *name, plugin_fn **function)
{
	const char *path = getenv(variable);
	void *handle;

	if (!path)
		skip();
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(handle);
	*function = dlsym(handle, name);
	assert_non_null(*function);
	return handle;
}

static const struct gm_module_record *first_module(uint32_t stack)
{
	const struct gm_stack_record *record = gm_store_record(GM_TABLE_STACKS, stack);
	const struct gm_frame_record *frame;

	assert_non_null(record);
	frame = gm_store_record(GM_TABLE_FRAMES,
				*(uint32_t *)gm_store_record(GM_TABLE_STACK_FRAMES, record->first));
	assert_int_not_equal(frame->native.module, GM_NONE);
	return gm_store_record(GM_TABLE_MODULES, frame->native.module);
}

static __attribute__((noinline)) uint32_t call(plugin_fn *function)
{
	uint32_t stack = function(probe_stack);

	BARRIER();
	return stack;
}

/* Frames of a stack after the first as text: what lies below the plugin. */
static void below(uint32_t stack, char *to, size_t room)
{
	char text[20000], *line;

	probe_describe(stack, text, sizeof(text));
	line = strchr(strchr(text, '\n') + 1, '\n') + 1;
	snprintf(to, room, "%s", line);
}

static const char *second_line(const char *text)
{
	const char *end = strchr(text, '\n');

	end = end ? strchr(end + 1, '\n') : NULL;
	return end ? end : text;
}

static void reload(const char *unwinder)
{
	char under_a[20000], under_b[20000];
	plugin_fn *a, *b;
	uint32_t in_a, in_b, again;
	uintptr_t at;
	void *handle;

	if (!probe_start_with(unwinder, 64))
		skip();
	handle = load("PLUGIN_A", "plugin_a", &a);
	for (int i = 0; i < 3; i++) /* one place in the program for all calls */
		in_a = call(a);
	assert_string_equal(store_double_string(first_module(in_a)->path_string),
			    getenv("PLUGIN_A"));
	below(in_a, under_a, sizeof(under_a));
	at = (uintptr_t)a;
	dlclose(handle);
	gm_stack_modules_changed();

	handle = load("PLUGIN_B", "plugin_b", &b);
	if ((uintptr_t)b != at)
		skip(); /* the loader put it elsewhere: nothing to see */
	for (int i = 0; i < 3; i++)
		in_b = call(b);
	assert_int_not_equal(in_a, in_b);
	assert_string_equal(store_double_string(first_module(in_b)->path_string),
			    getenv("PLUGIN_B"));
	assert_int_equal(first_module(in_a)->unloaded, 1);
	assert_int_equal(first_module(in_b)->unloaded, 0);
	/* call() and then two places in this function; all below is the same */
	below(in_b, under_b, sizeof(under_b));
	assert_string_equal(second_line(under_b), second_line(under_a));
	dlclose(handle);
	gm_stack_modules_changed();

	/* the first one again: it may be called what it was or be a new module, but not the second
	 */
	handle = load("PLUGIN_A", "plugin_a", &a);
	again = call(a);
	assert_int_not_equal(again, in_b);
	assert_string_equal(store_double_string(first_module(again)->path_string),
			    getenv("PLUGIN_A"));
	dlclose(handle);
}

static void test_reload(void **state)
{
	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	reload(gm_stack_unwinder());
}

static void test_reload_libunwind(void **state)
{
	(void)state;
	reload("libunwind");
}

static void test_reload_libgcc(void **state)
{
	(void)state;
	reload("libgcc");
}

/* What was learnt of stacks that the unloaded library is not in stays. */
static void test_unload_keeps_the_rest(void **state)
{
	struct gm_raw_stack raw = made(5, 3);
	plugin_fn *a;
	uint32_t kept;
	void *handle;

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	kept = gm_stack_intern(&raw, NULL);
	handle = load("PLUGIN_A", "plugin_a", &a);
	call(a);
	dlclose(handle);
	gm_stack_modules_changed();
	assert_int_equal(gm_stack_intern(&raw, NULL), kept);
	handle = load("PLUGIN_A", "plugin_a", &a);
	dlclose(handle);
	gm_stack_modules_changed();
	assert_int_equal(gm_stack_intern(&raw, NULL), kept);
}

static void test_caller_module(void **state)
{
	plugin_fn *a;
	void *handle;

	(void)state;
	probe_start(GM_STACKS_FULL, 64);
	handle = load("PLUGIN_A", "plugin_a", &a);
	call(a);
	assert_string_equal(probe_caller_module(), getenv("PLUGIN_A"));
	dlclose(handle);
	gm_stack_modules_changed();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_and_different),
		cmocka_unit_test(test_contents),
		cmocka_unit_test(test_python_frames_count),
		cmocka_unit_test(test_empty_and_full),
		cmocka_unit_test(test_incomplete),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_reload_libunwind),
		cmocka_unit_test(test_reload_libgcc),
		cmocka_unit_test(test_unload_keeps_the_rest),
		cmocka_unit_test(test_caller_module),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
